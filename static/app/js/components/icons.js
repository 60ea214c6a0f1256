/** Line icons on a 20 px grid, drawn in the text's colour. Decorative: the control they stand in has the name. */

import { html } from "../html.js";

/** @type {Record<string, string>} */
const PATHS = {
  plus: "M10 4v12M4 10h12",
  compose:
    "M11.5 4.5H6A2.5 2.5 0 0 0 3.5 7v7A2.5 2.5 0 0 0 6 16.5h7a2.5 2.5 0 0 0 2.5-2.5V9M9 11l.4-2.2 6-6a1.27 1.27 0 0 1 1.8 1.8l-6 6L9 11Z",
  search: "M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12Zm4.3-1.7L17 17",
  sidebar: "M5.5 3.5h9a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2h-9a2 2 0 0 1-2-2v-9a2 2 0 0 1 2-2ZM8 3.5v13",
  dots: "M4.6 10a.4.4 0 1 0 .8 0 .4.4 0 0 0-.8 0Zm5 0a.4.4 0 1 0 .8 0 .4.4 0 0 0-.8 0Zm5 0a.4.4 0 1 0 .8 0 .4.4 0 0 0-.8 0Z",
  pin: "m12.2 3 4.8 4.8-2 .6-2.7 2.7-.3 3.6-1.1 1.1-5.7-5.7L6.3 9l3.6-.3L12.6 6 12.2 3ZM8 12l-4.5 4.5",
  rename: "M4 16h12M12.6 3.9a1.4 1.4 0 0 1 2 2L7.5 13l-3 .9.9-3 7.2-7Z",
  archive: "M3.5 4.5h13v3h-13v-3ZM4.5 7.5v7a1.5 1.5 0 0 0 1.5 1.5h8a1.5 1.5 0 0 0 1.5-1.5v-7M8.5 10.5h3",
  trash:
    "M4 6h12M8 6V4.5A1 1 0 0 1 9 3.5h2a1 1 0 0 1 1 1V6m2.5 0-.6 9a1.5 1.5 0 0 1-1.5 1.4H7.6A1.5 1.5 0 0 1 6.1 15L5.5 6m3 3.5v4m3-4v4",
  export: "M10 12.5v-9m0 0L6.5 7M10 3.5 13.5 7M4 12v2.5A1.5 1.5 0 0 0 5.5 16h9a1.5 1.5 0 0 0 1.5-1.5V12",
  down: "m5 8 5 5 5-5",
  right: "m8 5 5 5-5 5",
  arrowDown: "M10 4v12m0 0-4.5-4.5M10 16l4.5-4.5",
  arrowUp: "M10 16V4m0 0L5.5 8.5M10 4l4.5 4.5",
  copy: "M8.5 7.5h6a1.5 1.5 0 0 1 1.5 1.5v6a1.5 1.5 0 0 1-1.5 1.5h-6A1.5 1.5 0 0 1 7 15V9a1.5 1.5 0 0 1 1.5-1.5ZM13 7.5V5a1.5 1.5 0 0 0-1.5-1.5h-6A1.5 1.5 0 0 0 4 5v6a1.5 1.5 0 0 0 1.5 1.5H7",
  check: "m4.5 10.5 3.5 3.5 7.5-8",
  retry: "M15.7 8A6 6 0 1 0 16 11.5M16 4v4h-4",
  close: "m5 5 10 10M15 5 5 15",
  image:
    "M5 3.5h10A1.5 1.5 0 0 1 16.5 5v10a1.5 1.5 0 0 1-1.5 1.5H5A1.5 1.5 0 0 1 3.5 15V5A1.5 1.5 0 0 1 5 3.5ZM3.5 13.5 7.5 10l3 2.7 2.5-2 3.5 3M12.5 7.5h.01",
  memory: "M4 4.5c2.2-.8 4.3-.5 6 1 1.7-1.5 3.8-1.8 6-1v11c-2.2-.8-4.3-.5-6 1-1.7-1.5-3.8-1.8-6-1v-11ZM10 5.5v11",
  settings: "M3.5 6h7m4 0h2m-13 8h2m4 0h7M12.5 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm-5 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  signOut: "M8 3.5H5.5A1.5 1.5 0 0 0 4 5v10a1.5 1.5 0 0 0 1.5 1.5H8M12.5 13.5 16 10l-3.5-3.5M16 10H8",
  admin: "M10 3 4.5 5v4.5c0 3.3 2.2 6 5.5 7.5 3.3-1.5 5.5-4.2 5.5-7.5V5L10 3Zm-2.3 7 1.7 1.7 3-3.2",
  sun: "M10 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM10 2v1.5m0 13V18M2 10h1.5m13 0H18M4.3 4.3l1.1 1.1m9.2 9.2 1.1 1.1m0-11.4-1.1 1.1m-9.2 9.2-1.1 1.1",
  moon: "M16 11.8A6.5 6.5 0 0 1 8.2 4a6.5 6.5 0 1 0 7.8 7.8Z",
  system: "M4.5 4h11a1 1 0 0 1 1 1v7.5a1 1 0 0 1-1 1h-11a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1ZM7.5 16.5h5M10 13.5v3",
  wrench:
    "M12 4a4 4 0 0 0-3.6 5.6L3.8 14.2a1.4 1.4 0 0 0 2 2l4.6-4.6A4 4 0 0 0 15.7 7L13 9.5l-2.5-2.5L13 4.3A4 4 0 0 0 12 4Z",
  spark: "M10 3c.5 4 2.5 6 7 7-4.5 1-6.5 3-7 7-.5-4-2.5-6-7-7 4.5-1 6.5-3 7-7Z",
  warning: "M10 3.5 2.8 16h14.4L10 3.5Zm0 5v3.5m0 2h.01",
  link: "M8.5 11.5a3 3 0 0 0 4.3 0l2.5-2.5A3 3 0 0 0 11 4.7l-1 1m1.5 2.8a3 3 0 0 0-4.3 0L4.7 11A3 3 0 0 0 9 15.3l1-1",
  key: "M13 10.5a3.5 3.5 0 1 0-3.4-2.7L3.5 14v2.5H6V15h1.5v-1.5L10.2 11a3.5 3.5 0 0 0 2.8-.5Zm.8-4.3h.01",
  keyboard:
    "M4 5.5h12A1.5 1.5 0 0 1 17.5 7v6a1.5 1.5 0 0 1-1.5 1.5H4A1.5 1.5 0 0 1 2.5 13V7A1.5 1.5 0 0 1 4 5.5ZM5.5 8.5h.01m2.99 0h.01m2.99 0h.01m2.99 0h.01M7 11.5h6",
  fold: "M3 10h2m2 0h2m2 0h2m2 0h2M6.5 4 10 7l3.5-3M6.5 16 10 13l3.5 3",
  hook: "M12.5 4v7.5a3.75 3.75 0 1 1-7.5 0V9.5L7 11.5M12.5 4a1.2 1.2 0 1 0 0-.01",
  clock: "M10 16.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM10 6.5V10l2.5 1.5",
};

/** @param {{name: string, size?: number}} props */
export function Icon({ name, size = 20 }) {
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} />
  </svg>`;
}

/** A page whose older writing still shows across it. @param {{size?: number}} props */
export function Mark({ size = 24 }) {
  return html`<svg class="mark" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path class="mark-old" d="M9.5 6v12M14.5 6v12" />
    <path class="mark-new" d="M7 9.5h10M7 14.5h6" />
    <path class="mark-page" d="M6.5 2.75h11a2.75 2.75 0 0 1 2.75 2.75v13a2.75 2.75 0 0 1-2.75 2.75h-11a2.75 2.75 0 0 1-2.75-2.75v-13A2.75 2.75 0 0 1 6.5 2.75Z" />
  </svg>`;
}
