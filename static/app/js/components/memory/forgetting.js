/** The question before something is forgotten, and what is said afterwards. */

import { sentenceOf } from "../../commands/conversations.js";
import { t } from "../../i18n.js";
import { changeUi, showToast } from "../../state/store.js";

/**
 * @param {{title: string, text: string, forget: () => Promise<any>, onDone: () => void}} wish
 */
export function askToForget({ title, text, forget, onDone }) {
  const onConfirm = async () => {
    try {
      await forget();
      showToast(t("It is forgotten."));
      onDone();
    } catch (error) {
      showToast(sentenceOf(error), "bad");
    }
  };
  changeUi({ dialog: { kind: "confirm", title, text, action: t("Forget"), onConfirm } });
}
