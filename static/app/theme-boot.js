// A classic script in the head: without it a dark page would flash white first.
(() => {
  try {
    // A signed-in page was served with what its user chose.
    const theme = "textSize" in document.documentElement.dataset ? null : localStorage.getItem("palimpsest.theme");
    if (theme) document.documentElement.dataset.theme = theme;
    if (localStorage.getItem("palimpsest.sidebar") === "closed") document.documentElement.dataset.sidebar = "closed";
  } catch {
    // Storage is refused: the system's theme it is.
  }
})();
