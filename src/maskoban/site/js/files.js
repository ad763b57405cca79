// The large files of the site: fetched once with progress, kept in the browser's cache, unpacked.

const CACHE = "maskoban-files"; // their names hold their hash, so a name never changes its content

// files: { name: { url, bytes } } to { name: Uint8Array }; bytes: as fetched, packed by gzip. onProgress(loaded, total).
export async function fetchFiles(files, onProgress) {
  const cache = await self.caches?.open(CACHE).catch(() => null);
  const total = Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0);
  let loaded = 0;
  const read = async (url) => {
    const kept = await cache?.match(url);
    const answer = kept ?? (await fetch(url));
    if (!answer.ok) throw new Error(`${url}: the server answered ${answer.status}`);
    const chunks = [];
    for (let reader = answer.body.getReader(), part; !(part = await reader.read()).done; ) {
      chunks.push(part.value);
      loaded += part.value.length;
      onProgress(loaded, total);
    }
    const packed = new Blob(chunks);
    // A full disk is no reason to stop.
    if (cache && !kept) await cache.put(url, new Response(packed)).catch(() => {});
    const unpacked = packed.stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(unpacked).arrayBuffer());
  };
  const names = Object.keys(files);
  const found = await Promise.all(names.map((name) => read(files[name].url)));
  return Object.fromEntries(names.map((name, i) => [name, found[i]]));
}
