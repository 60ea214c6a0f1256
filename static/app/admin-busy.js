/** Says on a pressed button what is waited for: a model may take a minute to answer. */
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.dataset.busy) return;
  button.textContent = button.dataset.busy;
  button.setAttribute("aria-busy", "true");
});
// Back from the next page, the browser may show this one as it was left.
addEventListener("pageshow", (event) => event.persisted && document.querySelector("[aria-busy]") && location.reload());
