/** Replace the label of a pressed button by its `data-busy` text: a model may take a minute to respond. */
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.dataset.busy) return;
  button.textContent = button.dataset.busy;
  button.setAttribute("aria-busy", "true");
});
// On "back", the browser may restore this page from its cache with the button still busy.
addEventListener("pageshow", (event) => event.persisted && document.querySelector("[aria-busy]") && location.reload());
