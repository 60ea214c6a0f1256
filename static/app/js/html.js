/** Templates: htm bound to Preact, and `memo` for components that render again only when a property changes. */

import htm from "htm";
import { Component, h } from "preact";

export const html = htm.bind(h);

/**
 * @template {Record<string, any>} P
 * @param {(props: P) => any} render
 * @returns {(props: P) => any}
 */
export function memo(render) {
  class Memo extends Component {
    /** @param {Record<string, any>} next */
    shouldComponentUpdate(next) {
      const now = /** @type {Record<string, any>} */ (this.props);
      return Object.keys({ ...now, ...next }).some((name) => now[name] !== next[name]);
    }

    render() {
      return h(/** @type {any} */ (render), /** @type {any} */ (this.props));
    }
  }
  return /** @type {any} */ (Memo);
}
