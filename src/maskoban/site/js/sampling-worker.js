// The worker that samples. Several requests take turns, one network evaluation each.
//   in:  { files } once, then { id, start, inside, seed, config, numbers, bound } or { id, stop: true }
//   out: { loading: { loaded, total } }, { loading: null } or { failed }; then { id, step }, { id, done: true } or { id, fault }

import { fetchFiles } from "./files.js";
import { loadNetworks } from "./network.js";
import { sampleSteps } from "./sampler.js";

const stopped = new Set();
let networks;

// Lets messages in between two evaluations.
const turn = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => (port1.close(), resolve());
    port2.postMessage(null);
  });

async function load(files) {
  let told = 0;
  const found = await fetchFiles(files, (loaded, total) => {
    if (loaded < total && performance.now() - told < 100) return;
    told = performance.now();
    postMessage({ loading: { loaded, total } });
  });
  networks = await loadNetworks(found);
  await networks.int8();
  postMessage({ loading: null });
}

async function sample({ id, start, inside, seed, config, numbers, bound }) {
  const network = await networks[config.precision]();
  for await (const step of sampleSteps(network, start, inside, seed, config, numbers, bound)) {
    if (stopped.has(id)) break;
    postMessage({ id, step });
    await turn();
  }
  stopped.delete(id);
  postMessage({ id, done: true });
}

self.onmessage = ({ data }) => {
  if (data.files) load(data.files).catch((error) => postMessage({ failed: error.message }));
  else if (data.stop) stopped.add(data.id);
  else sample(data).catch((error) => postMessage({ id: data.id, fault: error.message }));
};
