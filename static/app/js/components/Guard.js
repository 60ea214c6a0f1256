/** Shows `instead` if rendering the children failed, so that nothing around them is lost. */

import { Component } from "preact";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { PlainText } from "./PlainText.js";

/** @augments {Component<{instead: any, children?: any}, {hasFailed: boolean}>} */
export class Guard extends Component {
  state = { hasFailed: false };

  /** @param {unknown} error */
  componentDidCatch(error) {
    console.error(error);
    this.setState({ hasFailed: true });
  }

  render() {
    return this.state.hasFailed ? this.props.instead : this.props.children;
  }
}

/** @param {{text: string}} props */
export const AsWritten = ({ text }) => html`<div class="as-written">
  <p class="outcome">${t("This could not be rendered. It is shown as it was written.")}</p>
  <pre tabindex="0"><${PlainText} text=${text} /></pre>
</div>`;
