// The counter-based rng of diffusion/rng.py, bit for bit: every number depends on (seed, board, stream, index) alone.

const STRIDE = 0x9e3779b97f4a7c15n;
const u64 = (value) => BigInt.asUintN(64, value);

function mix(z) {
  z = u64((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = u64((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
}

// `count` numbers in [0, 1) of one stream of a board.
export function uniforms(seed, board, stream, count) {
  let key = mix(u64(BigInt(seed) + STRIDE));
  key = mix(u64(key + STRIDE * (BigInt(board) + 1n)));
  key = mix(u64(key + STRIDE * (BigInt(stream) + 1n)));
  return Float64Array.from({ length: count }, (_, i) => Number(mix(u64(key + STRIDE * BigInt(i + 1))) >> 11n) * 2 ** -53);
}
