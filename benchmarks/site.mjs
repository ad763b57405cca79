// The Node side of site.py: node site.mjs FOLDER, then jobs as JSON lines. FOLDER holds the site's modules and files.
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const folder = process.argv[2];
const load = (file) => import(pathToFileURL(`${folder}/${file}`));
const [{ parse }, { Solver }, { sampleSteps }] = await Promise.all(["board.js", "solver.js", "sampler.js"].map(load));
const site = JSON.parse(readFileSync(`${folder}/site.json`));
const solver = new Solver(new WebAssembly.Module(readFileSync(`${folder}/solver.wasm`)), site.references);

let networks, weights;
async function network(precision) {
  if (!networks) {
    const unpack = ({ url }) => new Uint8Array(gunzipSync(readFileSync(`${folder}/${url}`)));
    const files = Object.fromEntries(Object.entries(site.files).map(([name, file]) => [name, unpack(file)]));
    weights = files["model.safetensors"];
    networks = await (await load("network.js")).loadNetworks(files);
  }
  return networks[precision]();
}

const JOBS = {
  solve({ boards, mode, states }) {
    const parsed = boards.map(parse), start = process.cpuUsage();
    const results = parsed.map((board) => solver.solve(board, mode, { states }));
    const { user, system } = process.cpuUsage(start);
    return { seconds: (user + system) / 1e6, results: results.map(({ verdict, pushes, moves, expanded }) => [verdict, pushes, moves, expanded]) };
  },
  async sample({ start, inside, seed, config, numbers }) {
    const net = await network(config.precision), boards = [], before = process.cpuUsage();
    const steps = []; // as site.py's `sampled`
    for await (const step of sampleSteps(net, Uint8Array.from(start), inside, seed, config, numbers, site.bound)) {
      if (step.type === "commit") steps.push(["commit", step.cell, step.tile, step.probabilities]);
      else steps.push(["attempt", step.accepted]), step.board.forEach((i, at) => step.accepted[at] && (boards[i] = [...step.boards[at]]));
    }
    const { user, system } = process.cpuUsage(before);
    return { boards, steps, seconds: (user + system) / 1e6 };
  },
  // Every output of a graph, written one after the other into a file.
  async outputs({ graph, names, tokens, cells, out }) {
    await network("int8");
    const ort = await load("ort.js");
    const session = await ort.InferenceSession.create(new Uint8Array(readFileSync(graph)), {
      executionProviders: ["wasm"],
      externalData: [{ path: "model.safetensors", data: weights }],
    });
    const tensor = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
    const found = await session.run({ tokens: tensor(tokens), cells: tensor(cells) });
    const bytes = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    writeFileSync(out, Buffer.concat(names.map((name) => bytes(found[name]))));
    return { sizes: names.map((name) => found[name].data.byteLength) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, ...job } = JSON.parse(line);
  console.log(JSON.stringify(await JOBS[kind](job)));
}
