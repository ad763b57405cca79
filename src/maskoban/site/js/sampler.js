// The sampler of diffusion/sampler.py: ancestral unmasking in random order, Gibbs sweeps, rejection by the critic. The
// same seed gives the same boards as long as both networks compute the same logits; docs/site.md says where they differ.

import { MASK } from "./board.js";
import { uniforms } from "./rng.js";

const TILES = 7;
const MAX_ATTEMPTS = 1000;
const [UNMASK_ORDER, UNMASK_TILE, SWEEPS, ATTEMPT] = [0, 1, 2, 2 ** 20];
const ACCEPT = ATTEMPT - 1;

// SamplerConfig.change: undefined and null change nothing; other changes turn off what was tuned without them.
export function change(config, changes) {
  const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined && value !== null));
  const changed = (name) => name in given && given[name] !== config[name];
  const off = {};
  if (changed("steps") || changed("temperature")) off.critic = false;
  if (changed("steps")) off.sweeps = 0;
  return { ...config, ...off, ...given };
}

// Network evaluations per board of so many masked cells.
export const cost = ({ steps, sweeps, critic }, cells) => Math.min(steps ?? cells, cells) + sweeps * cells + (critic ? 1 : 0);

// Async generator of { type: "commit", board, cell, tile, probabilities } and { type: "attempt", board, attempt, accepted,
// boards }: arrays with an entry a cell or a board. `board` counts from 0, `numbers` says which boards of the seed's
// sequence they are. `start` is the board to fill, `inside` its cells that the network sees.
//   network: { batch, logits(rows, cells), scores(rows) }; rows: Uint8Arrays of the inside cells, cells: one a row
export async function* sampleSteps(network, start, inside, seed, config, numbers, bound = 1) {
  const rejected = numbers.map(() => 0);
  let waiting = numbers.map((_, i) => i);
  while (waiting.length) {
    const front = waiting.slice(0, network.batch);
    waiting = waiting.slice(network.batch);
    const attempt = front.map((i) => rejected[i]);
    const rows = front.map(() => Uint8Array.from(inside, (cell) => start[cell]));
    const rng = (row, stream, count) => uniforms(seed, numbers[front[row]], attempt[row] * ATTEMPT + stream, count);
    const masked = inside.map((cell, i) => i).filter((i) => rows[0][i] === MASK);
    for await (const made of unmask(network, rows, masked, config, rng)) yield commit(made, front, inside);
    for await (const made of gibbsSweeps(network, rows, masked, config, rng)) yield commit(made, front, inside);

    let accepted = front.map(() => true);
    if (config.critic) {
      const scores = await network.scores(rows);
      accepted = scores.map(
        (score, row) =>
          rng(row, ACCEPT, 1)[0] < Math.exp(Math.min(score - Math.log(bound), 0)) || attempt[row] >= MAX_ATTEMPTS - 1,
      );
    }
    const boards = rows.map((row) => {
      const board = start.slice();
      inside.forEach((cell, i) => (board[cell] = row[i]));
      return board;
    });
    yield { type: "attempt", board: front, attempt, accepted, boards };
    const again = front.filter((_, row) => !accepted[row]);
    for (const i of again) rejected[i]++;
    waiting = [...again, ...waiting];
  }
}

function commit({ row, cell, tile, probabilities }, front, inside) {
  return { type: "commit", board: row.map((r) => front[r]), cell: cell.map((c) => inside[c]), tile, probabilities };
}

// Step s of S unmasks max(ceil(left / (S - s)), 1) cells, in the order of one random number a cell.
async function* unmask(network, rows, masked, config, rng) {
  const cells = rows[0].length;
  const orders = rows.map((_, row) => sorted(masked, rng(row, UNMASK_ORDER, cells)));
  const u = rows.map((_, row) => rng(row, UNMASK_TILE, cells));
  const steps = Math.min(config.steps ?? masked.length, masked.length);
  for (let done = 0, step = 0; done < masked.length; step++) {
    const left = masked.length - done;
    const count = Math.min(Math.max(Math.ceil(left / Math.max(steps - step, 1)), 1), left);
    const chosen = orders.map((order) => order.slice(done, done + count));
    const logits = await network.logits(rows, chosen);
    yield sampled(rows, chosen, logits, u, config.temperature);
    done += count;
  }
}

// Resample each cell that was masked at first given all others, in random order.
async function* gibbsSweeps(network, rows, masked, config, rng) {
  const cells = rows[0].length;
  for (let sweep = 0; sweep < config.sweeps; sweep++) {
    const u = rows.map((_, row) => rng(row, SWEEPS + 2 * sweep + 1, cells));
    const orders = rows.map((_, row) => sorted(masked, rng(row, SWEEPS + 2 * sweep, cells)));
    for (let place = 0; place < masked.length; place++) {
      const chosen = orders.map((order) => [order[place]]);
      rows.forEach((row, r) => (row[chosen[r][0]] = MASK));
      const logits = await network.logits(rows, chosen);
      yield sampled(rows, chosen, logits, u, config.temperature);
    }
  }
}

const sorted = (cells, keys) => cells.slice().sort((a, b) => keys[a] - keys[b] || a - b);

// Samples the chosen cells of every row from the logits, a vector of tiles a cell, and writes them.
function sampled(rows, chosen, logits, u, temperature) {
  const made = { row: [], cell: [], tile: [], probabilities: [] };
  let place = 0;
  for (const [row, cells] of chosen.entries())
    for (const cell of cells) {
      const p = softmax(logits.subarray(place, (place += TILES)), temperature);
      const tile = sampleTile(p, u[row][cell]);
      rows[row][cell] = tile;
      made.row.push(row);
      made.cell.push(cell);
      made.tile.push(tile);
      made.probabilities.push(p);
    }
  return made;
}

export function softmax(logits, temperature = 1) {
  const most = Math.max(...logits);
  const z = Array.from(logits, (x) => Math.exp((x - most) / temperature));
  const sum = z.reduce((a, b) => a + b, 0);
  return z.map((x) => x / sum);
}

// The tile at which the cumulative probability passes u.
export function sampleTile(p, u) {
  let sum = 0, tile = 0;
  for (const each of p) if ((sum += each) <= u) tile++;
  return Math.min(tile, TILES - 1);
}
