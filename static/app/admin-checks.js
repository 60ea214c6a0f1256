/** Load the checks of `manage.py doctor` into the panel's first page after it is shown. They call no model. */
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
