/**
 * Cuts Markdown into blocks that can be rendered separately, and groups them into sections. Reads each line of a
 * growing text only once, and parses only enough Markdown to find where blocks end. Uses no DOM.
 */

import { lengthOf } from "./pieces.js";

/**
 * A block's `raw` is its slice of the text; all slices together are the whole text. `head` is rendered before `raw`:
 * the first two lines of a table that was cut. `isOpen`: the block may still grow. Kind "line": a further piece of a
 * long line.
 * @typedef {{key: number, kind: "text"|"line"|"code", raw: string, head: string, code: string, language: string,
 *   isOpen: boolean, links: Links|null}} Block
 * @typedef {{key: number, blocks: Block[], chars: number, isLazy: boolean}} Section
 * @typedef {{mark: string, indent: number, language: string, codeAt: number}} Fence
 * @typedef {Record<string, any>} Links
 */

/** Cut a block at the first line beyond this size, because parsing time can grow with the square of the size. */
export const BLOCK_CHARS = 5_000;
/** Cut a list between its items if possible, but no later than here. */
const LIST_CHARS = 2 * BLOCK_CHARS;
const SECTION_CHARS = 8_000;
const SECTION_BLOCKS = 50;
/** More new text than this at once does not come from a stream, so draw only the parts near the viewport. */
const LAZY_CHARS = 20_000;

const BLANK = /^[ \t]*$/;
const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)$/;
const FENCE_END = /^ {0,3}(`{3,}|~{3,})[ \t]*$/;
/** Also matches the beginning of a marker: a line that is still growing must not end the list before it. */
const ITEM = /^ {0,3}(?:[-+*]|\d{1,9}(?:[.)]|$))(?:[ \t]|$)/;
const TABLE_DELIMITER = /^[ \t|:-]*-[ \t|:-]*$/;
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

/** The reader's position and what it knows about the current block, which begins at `blockAt`. */
const start = () => ({
  at: 0,
  blockAt: 0,
  lastLine: "",
  inList: false,
  wasBlank: false,
  isWithinLine: false,
  head: "",
  tableHead: "",
  fence: /** @type {Fence|null} */ (null),
});

export class BlockReader {
  /** @type {Section[]} */
  sections = [];
  /** @type {Section[]} without the unfinished end of the text */
  finished = [];
  /** @type {Map<number, Block>} blocks of the unfinished end of the text, by key */
  provisional = new Map();
  /** @type {Links} */
  links = Object.create(null);
  text = "";
  isFinal = false;
  blockCount = 0;
  linesRead = 0;
  place = start();

  /** @param {(raw: string, links: Links) => void} collectLinks adds the link definitions in `raw` to `links` */
  constructor(collectLinks) {
    this.collectLinks = collectLinks;
  }

  begin() {
    this.text = "";
    this.finished = [];
    this.provisional = new Map();
    this.links = Object.create(null);
    this.blockCount = 0;
    this.linesRead = 0;
    this.place = start();
  }

  /**
   * Read the whole current text. If it continues the previous text, finished blocks and full sections stay the same
   * objects. Only blocks of a final text get links, because a link may be defined below its use.
   * @param {string} text @param {boolean} isFinal @returns {Section[]}
   */
  read(text, isFinal) {
    if (text === this.text && isFinal === this.isFinal) return this.sections;
    if (!text.startsWith(this.text)) this.begin();
    const isLazy = text.length - this.text.length > LAZY_CHARS;
    this.text = text;
    this.isFinal = isFinal;
    for (let end = this.endOfLine(); end > 0; end = this.endOfLine()) this.takeLine(end, isLazy);
    const sections = this.withOpenEnd(isLazy);
    this.sections = isFinal && Object.keys(this.links).length ? sections.map((one) => this.linked(one)) : sections;
    return this.sections;
  }

  /** Return the end of the next line, or of a piece of a long line; 0 if the text ends before. */
  endOfLine() {
    const { at } = this.place;
    const window = this.text.slice(at, at + BLOCK_CHARS);
    const newline = window.indexOf("\n");
    if (newline >= 0) return at + newline + 1;
    if (window.length < BLOCK_CHARS) return 0;
    const space = window.lastIndexOf(" ");
    if (space > BLOCK_CHARS / 2) return at + space + 1;
    return at + lengthOf(window);
  }

  /** @param {number} end @param {boolean} isLazy */
  takeLine(end, isLazy) {
    const { place } = this;
    this.linesRead += 1;
    const isEnded = this.text[end - 1] === "\n";
    const line = this.text.slice(place.at, isEnded ? end - 1 : end);
    const isPiece = place.isWithinLine || (!isEnded && end < this.text.length);
    if (place.fence) this.readCode(place.fence, line, end, isLazy);
    else if (isPiece) this.takePiece(end, isLazy);
    else this.readText(line, end, isLazy);
    Object.assign(place, { isWithinLine: isPiece && !isEnded, lastLine: line, at: end });
  }

  /** @param {Fence} fence @param {string} line @param {number} end @param {boolean} isLazy */
  readCode(fence, line, end, isLazy) {
    const mark = this.place.isWithinLine ? undefined : FENCE_END.exec(line)?.[1];
    if (mark?.startsWith(fence.mark)) this.finishBlock("code", end, isLazy);
  }

  /** @param {number} end @param {boolean} isLazy */
  takePiece(end, isLazy) {
    const { isWithinLine, at } = this.place;
    if (!isWithinLine) this.finishBlock("text", at, isLazy);
    this.finishBlock(isWithinLine ? "line" : "text", end, isLazy);
  }

  /** @param {string} line @param {number} end @param {boolean} isLazy */
  readText(line, end, isLazy) {
    const { place } = this;
    const fence = FENCE.exec(line);
    // An indented fence may belong to a list item.
    if (fence && !(place.inList && fence[1])) {
      this.finishBlock("text", place.at, isLazy);
      const language = fence[3].trim().split(/\s+/)[0] ?? "";
      place.fence = { mark: fence[2], indent: fence[1].length, language, codeAt: end };
      return;
    }
    const isItem = ITEM.test(line);
    const size = end - place.blockAt;
    const isNext = place.wasBlank && /^[^ \t]/.test(line) && !(place.inList && isItem);
    const isFull = size > BLOCK_CHARS && (!place.inList || isItem || size > LIST_CHARS);
    if (isNext || isFull) {
      const head = !isNext && line.includes("|") ? place.tableHead : "";
      this.finishBlock("text", place.at, isLazy);
      Object.assign(place, { head, tableHead: head });
    }
    if (!place.tableHead && place.lastLine.includes("|") && TABLE_DELIMITER.test(line))
      place.tableHead = `${place.lastLine}\n${line}\n`;
    place.inList ||= isItem;
    place.wasBlank = BLANK.test(line);
  }

  /** @param {Block["kind"]} kind @param {number} end @param {boolean} isLazy */
  finishBlock(kind, end, isLazy) {
    const { place } = this;
    if (end > place.blockAt) addBlock(this.finished, this.makeBlock(kind, end, false), isLazy);
    Object.assign(place, { blockAt: end, inList: false, wasBlank: false, head: "", tableHead: "", fence: null });
  }

  /**
   * Make the block from the end of the previous one to `end`.
   * @param {Block["kind"]} kind @param {number} end @param {boolean} isOpen @returns {Block}
   */
  makeBlock(kind, end, isOpen) {
    const { at, blockAt, head, fence } = this.place;
    const raw = this.text.slice(blockAt, end);
    const key = this.blockCount;
    this.blockCount += 1;
    const known = this.provisional.get(key);
    if (known?.raw === raw && known.kind === kind && known.isOpen === isOpen) return known;
    if (kind === "text" && !isOpen && DEFINITION.test(raw)) this.collectLinks(raw, this.links);
    const code = fence ? codeOf(this.text.slice(fence.codeAt, Math.max(fence.codeAt, at)), fence) : "";
    return { key, kind, raw, head, code, language: fence?.language ?? "", isOpen, links: null };
  }

  /**
   * Return the sections with the last line. That line may still grow, so the next call reads it again.
   * @param {boolean} isLazy @returns {Section[]}
   */
  withOpenEnd(isLazy) {
    const { finished, place, blockCount, linesRead, text } = this;
    this.finished = [...finished];
    this.place = { ...place };
    if (place.at < text.length && (place.fence || !place.isWithinLine)) this.takeLine(text.length, isLazy);
    const kind = this.place.fence ? "code" : this.place.isWithinLine ? "line" : "text";
    if (this.place.blockAt < text.length)
      addBlock(this.finished, this.makeBlock(kind, text.length, !this.isFinal), isLazy);
    const sections = this.finished;
    this.provisional = new Map(
      sections
        .slice(Math.max(0, finished.length - 1))
        .flatMap((section) => section.blocks.filter((block) => block.key >= blockCount))
        .map((block) => [block.key, block]),
    );
    Object.assign(this, { finished, place, blockCount, linesRead });
    return sections;
  }

  /** @param {Section} section @returns {Section} */
  linked(section) {
    const blocks = section.blocks.map((block) =>
      block.kind !== "code" && block.raw.includes("[") ? { ...block, links: this.links } : block,
    );
    return { ...section, blocks };
  }
}

/** Add a block to the last section or a new one. Sections that were returned before do not change. */
function addBlock(/** @type {Section[]} */ sections, /** @type {Block} */ block, /** @type {boolean} */ isLazy) {
  const last = sections.at(-1);
  const chars = block.raw.length;
  if (!last || last.chars + chars > SECTION_CHARS || last.blocks.length >= SECTION_BLOCKS)
    sections.push({ key: sections.length, blocks: [block], chars, isLazy });
  else sections[sections.length - 1] = { ...last, blocks: [...last.blocks, block], chars: last.chars + chars };
}

/** @param {string} lines between the fences @param {Fence} fence */
function codeOf(lines, { indent }) {
  const code = lines.endsWith("\n") ? lines.slice(0, -1) : lines;
  return indent ? code.replace(new RegExp(`^ {1,${indent}}`, "gm"), "") : code;
}
