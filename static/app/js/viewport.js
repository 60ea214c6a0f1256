/** Keep the page as tall as the part of the screen above the phone's keyboard. */
export function startViewport() {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const fit = () => {
    // Pinch zoom does not change the height: the user sees less of the page and chooses which part.
    document.documentElement.style.setProperty("--viewport-height", `${viewport.height * viewport.scale}px`);
    // Safari scrolls the page under the keyboard, where there is nothing to see.
    if (viewport.scale === 1 && viewport.offsetTop > 0) scrollTo(0, 0);
  };
  viewport.addEventListener("resize", fit);
  viewport.addEventListener("scroll", fit);
  fit();
}
