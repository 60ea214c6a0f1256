// This is a classic script in the head, because a dark page would otherwise flash white first.
(() => {
  try {
    // The server has already set the theme in a signed-in user's page.
    const theme = "textSize" in document.documentElement.dataset ? null : localStorage.getItem("palimpsest.theme");
    if (theme) document.documentElement.dataset.theme = theme;
    if (localStorage.getItem("palimpsest.sidebar") === "closed") document.documentElement.dataset.sidebar = "closed";
  } catch {
    // Storage is blocked: use the system's theme.
  }
})();
