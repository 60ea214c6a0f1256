/** The checks of `manage.py doctor` on the panel's first page, which does not wait for them; no model is asked. */
const section = document.getElementById("checks");
const caption = section?.querySelector(".caption");
if (section && caption) {
  const waiting = document.createTextNode(`${section.dataset.waiting} `);
  caption.prepend(waiting);
  fetch(section.dataset.address)
    .then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(String(answer.status)))))
    .then((text) => {
      const findings = new DOMParser().parseFromString(text, "text/html").querySelector(".findings");
      if (!findings) throw new Error("no findings");
      waiting.remove();
      caption.before(document.adoptNode(findings));
    })
    .catch(() => (waiting.data = `${section.dataset.failed} `));
}
