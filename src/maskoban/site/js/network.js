// The network and the critic under ONNX Runtime Web: the graphs and weights that Python uses.

import * as ort from "./ort.js";

const BOARDS_AT_ONCE = 4; // few enough that a layer's activations stay in the cache

// files: bytes by name: "ort.wasm", "model.int8.onnx", "model.onnx", "critic.onnx" and the weights they name.
export async function loadNetworks(files) {
  ort.env.wasm.wasmBinary = files["ort.wasm"];
  ort.env.wasm.numThreads = 1; // more need a page that is isolated from other origins
  ort.env.logLevel = "error";
  const sessions = {};
  const session = (graph, weights) => {
    const externalData = weights.map((path) => ({ path, data: files[path] }));
    return (sessions[graph] ??= ort.InferenceSession.create(files[graph], { executionProviders: ["wasm"], externalData }));
  };
  // One evaluation at a time, whoever asks.
  let last = Promise.resolve();
  const evaluate = (opened, feed) => {
    const found = last.then(async () => Object.values(await (await opened).run(feed))[0].data);
    last = found.catch(() => {});
    return found;
  };
  const tensor = (values, ...shape) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), shape);
  const critic = () => session("critic.onnx", ["model.safetensors", "critic.safetensors"]);
  const network = (graph) => {
    const opened = session(graph, ["model.safetensors"]);
    return opened.then(() => ({
      batch: BOARDS_AT_ONCE,
      async logits(rows, cells) {
        const tokens = tensor(rows.flatMap((row) => [...row]), rows.length, rows[0].length);
        return evaluate(opened, { tokens, cells: tensor(cells.flat(), rows.length, cells[0].length) });
      },
      // Board by board: products of another size may round differently, and a score must not depend on the batch.
      async scores(rows) {
        const scores = [];
        for (const row of rows) scores.push((await evaluate(critic(), { tokens: tensor(row, 1, row.length) }))[0]);
        return scores;
      },
    }));
  };
  return { int8: () => network("model.int8.onnx"), fp32: () => network("model.onnx") };
}
