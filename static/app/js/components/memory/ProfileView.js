/** The profile, which is always in context, with all its versions and a way to restore them. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { errorText } from "../../commands/conversations.js";
import { consolidateProfile, profileVersions, readProfile, readVersion, revertProfile, writeProfile } from "../../commands/profile.js";
import { exact, formatMoment } from "../../format.js";
import { html } from "../../html.js";
import { t } from "../../i18n.js";
import { showToast } from "../../state/store.js";
import { stateName } from "../../state/trace.js";
import { Icon } from "../icons.js";
import { Markdown } from "../Markdown.js";
import { MoreButton } from "../MoreButton.js";
import { TextEditor } from "./TextEditor.js";

/** @typedef {import("../../commands/profile.js").Profile} Profile */
/** @typedef {import("../../commands/profile.js").Version} Version */
/** @typedef {import("../../commands/profile.js").VersionText} VersionText */

/** @type {Record<string, string>} */
const AUTHORS = { user: t("You"), forgetting: t("Something was forgotten") };

const authorOf = (/** @type {string|null} */ author) => AUTHORS[author ?? ""] ?? t("Nightly consolidation");

const LOOK_AGAIN_MS = 1500;
const BUSY = new Set(["pending", "running"]);

/** @param {Profile} profile */
const isLearning = ({ consolidation }) => BUSY.has(consolidation?.status ?? "");

/** @param {{consolidation: import("../../commands/profile.js").Consolidation|null}} props */
function LearningNote({ consolidation }) {
  if (!consolidation?.finished_at) return null;
  const { status, reason, finished_at: at, version } = consolidation;
  const done = version ? t("created version {n}", { n: version }) : t("found nothing new");
  const outcome = status === "done" ? done : (reason ?? stateName(status));
  return html`<p class="muted view-note">${t("Last updated {moment}: {outcome}", { moment: formatMoment(at), outcome })}</p>`;
}

export function ProfileView() {
  const profile = useSignal(/** @type {Profile|null} */ (null));
  const problem = useSignal("");
  const isEditing = useSignal(false);
  useEffect(() => {
    readProfile().then(
      (read) => (profile.value = read),
      (error) => (problem.value = errorText(error)),
    );
  }, []);
  if (problem.value) return html`<p class="card is-bad" role="alert">${problem.value}</p>`;
  const shown = profile.value;
  if (!shown) return html`<div class="skeletons" role="status" aria-label=${t("Loading…")}><i></i><i></i><i></i></div>`;
  const save = async (/** @type {string} */ text) => {
    profile.value = await writeProfile(shown, text);
    isEditing.value = false;
  };
  const learn = async () => {
    try {
      profile.value = await consolidateProfile();
      while (isLearning(profile.value)) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
        profile.value = await readProfile();
      }
    } catch (error) {
      showToast(errorText(error), "bad");
    }
  };
  const tokens = t("{n} of {most} tokens", { n: exact(shown.tokens), most: exact(shown.budget_tokens) });
  return html`<article>
    <header class="view-head"><h2 class="day-title">${t("Profile")}</h2>
      <div class="view-tools"><button type="button" class="button is-small" aria-pressed=${isEditing.value} onClick=${() => (isEditing.value = !isEditing.value)}><${Icon} name="rename" size=${16} />${t("Edit")}</button>
        <button type="button" class="button is-small" disabled=${isLearning(shown)} onClick=${learn}><${Icon} name="retry" size=${16} />${isLearning(shown) ? t("Learning…") : t("Learn now")}</button></div></header>
    <p class="muted view-note">${t("Who you are, what you prefer, what you work on: given to the model in every conversation.")} ${tokens}${shown.is_used ? "" : ` · ${t("not in use")}`}</p>
    <${LearningNote} consolidation=${shown.consolidation} />
    ${isEditing.value && html`<${TextEditor} label=${t("Text of the profile")} text=${shown.markdown} action=${t("Save")} mayBeEmpty onSave=${save} onCancel=${() => (isEditing.value = false)} />`}
    ${!isEditing.value && (shown.markdown ? html`<${Markdown} text=${shown.markdown} />` : html`<p>${t("There is nothing here yet. The profile is written from your memory every night, or by you.")}</p>`)}
    ${shown.version > 0 && html`<${Versions} key=${shown.version} onReverted=${(/** @type {Profile} */ now) => (profile.value = now)} />`}
  </article>`;
}

/** @param {{onReverted: (profile: Profile) => void}} props */
function Versions({ onReverted }) {
  const versions = useSignal(/** @type {Version[]} */ ([]));
  const cursor = useSignal(/** @type {string|null} */ (null));
  const load = async (/** @type {string|null} */ from) => {
    try {
      const page = await profileVersions(from);
      versions.value = [...versions.value, ...page.items];
      cursor.value = page.next_cursor;
    } catch (error) {
      showToast(errorText(error), "bad");
    }
  };
  useEffect(() => void load(null), []);
  return html`<h2 class="section-title">${t("Versions")}</h2>
    <ol class="versions">${versions.value.map((one, at) => html`<${VersionRow} key=${one.version} version=${one} isNewest=${at === 0} onReverted=${onReverted} />`)}</ol>
    ${cursor.value && html`<${MoreButton} className="button is-wide" label=${t("Earlier")} load=${() => load(cursor.value)} />`}`;
}

/** @param {{version: Version, isNewest: boolean, onReverted: (profile: Profile) => void}} props */
function VersionRow({ version, isNewest, onReverted }) {
  const text = useSignal(/** @type {VersionText|null} */ (null));
  const open = async (/** @type {any} */ event) => {
    if (!event.target.open || text.value) return;
    try {
      text.value = await readVersion(version.version);
    } catch (error) {
      showToast(errorText(error), "bad");
    }
  };
  const revert = async () => {
    try {
      onReverted(await revertProfile(version.version));
    } catch (error) {
      showToast(errorText(error), "bad");
    }
  };
  return html`<li><details class="version" onToggle=${open}>
    <summary><${Icon} name="right" size=${16} /><strong>${t("Version {n}", { n: version.version })}</strong>
      <span class="muted">${authorOf(version.author)} · ${formatMoment(version.created_at)}</span></summary>
    ${!isNewest && html`<button type="button" class="button is-small" onClick=${revert}>${t("Revert to this version")}</button>`}
    ${text.value && html`<div class="diff" role="group" aria-label=${t("What it changed")}>${text.value.changes.map((change) => html`<${Line} ...${change} />`)}</div>`}
  </details></li>`;
}

/** @param {{kind: "same"|"added"|"removed", text: string}} props */
function Line({ kind, text }) {
  if (kind === "added") return html`<ins class="diff-line is-added">${text || " "}</ins>`;
  return kind === "removed" ? html`<del class="diff-line is-removed">${text || " "}</del>` : html`<p class="diff-line">${text || " "}</p>`;
}
