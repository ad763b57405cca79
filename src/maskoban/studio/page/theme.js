// Runs before anything is painted: the colours chosen last time, so that no others flash up first.

try {
  const chosen = JSON.parse(localStorage.getItem("maskoban.theme"));
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // no storage, or not ours: the system's colours
}
