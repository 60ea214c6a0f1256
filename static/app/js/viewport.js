/** The page is as tall as what the phone's keyboard leaves of the screen. */
export function startViewport() {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const fit = () => {
    // What two fingers enlarge is as tall as before: less of it is seen, and where is theirs to choose.
    document.documentElement.style.setProperty("--viewport-height", `${viewport.height * viewport.scale}px`);
    // Safari scrolls the page under the keyboard; there is nothing to see there.
    if (viewport.scale === 1 && viewport.offsetTop > 0) scrollTo(0, 0);
  };
  viewport.addEventListener("resize", fit);
  viewport.addEventListener("scroll", fit);
  fit();
}
