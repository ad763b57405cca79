// The worker for level files and pictures. in: { id, kind, ... }; out: { id, result }, { id, refused } or { id, fault }

import { LevelError, readLevels, writeLevels } from "./levels.js";
import { png, solutionGif } from "./pictures.js";

const JOBS = {
  readLevels: ({ content }) => readLevels(content),
  writeLevels: ({ levels, format }) => writeLevels(levels, format),
  png,
  gif: solutionGif,
};

self.onmessage = async ({ data: { id, kind, ...job } }) => {
  try {
    postMessage({ id, result: await JOBS[kind](job) });
  } catch (error) {
    postMessage({ id, [error instanceof LevelError ? "refused" : "fault"]: error.message });
  }
};
