// The Node side of site.py: node site.mjs FOLDER, then jobs as JSON lines. FOLDER holds the site's modules and files.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const folder = process.argv[2];
const load = (file) => import(pathToFileURL(`${folder}/${file}`));
const [{ parse }, { Solver }, { sampleSteps }] = await Promise.all(["board.js", "solver.js", "sampler.js"].map(load));
const site = JSON.parse(readFileSync(`${folder}/site.json`));
const solver = new Solver(new WebAssembly.Module(readFileSync(`${folder}/solver.wasm`)), site.references);

let networks;
async function network(precision) {
  if (!networks) {
    const unpack = ({ url }) => new Uint8Array(gunzipSync(readFileSync(`${folder}/${url}`)));
    const files = Object.fromEntries(Object.entries(site.files).map(([name, file]) => [name, unpack(file)]));
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
    let evaluations = 0;
    for await (const step of sampleSteps(net, Uint8Array.from(start), inside, seed, config, numbers, site.bound)) {
      if (step.type === "commit") evaluations += step.board.length;
      else step.board.forEach((i, at) => step.accepted[at] && (boards[i] = [...step.boards[at]]));
    }
    const { user, system } = process.cpuUsage(before);
    return { boards, evaluations, seconds: (user + system) / 1e6 };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, ...job } = JSON.parse(line);
  console.log(JSON.stringify(await JOBS[kind](job)));
}
