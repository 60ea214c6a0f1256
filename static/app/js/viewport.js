/** The page is as tall as what the phone's keyboard leaves of the screen. */
export function startViewport() {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const fit = () => {
    document.documentElement.style.setProperty("--viewport-height", `${viewport.height}px`);
    // Safari scrolls the page under the keyboard; there is nothing to see there.
    if (viewport.offsetTop > 0) scrollTo(0, 0);
  };
  viewport.addEventListener("resize", fit);
  viewport.addEventListener("scroll", fit);
  fit();
}
