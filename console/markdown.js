// Copyright (C) The nginx-dsa authors
//
// Markdown as it grows.  A block that another block follows does not change any
// more, so each update parses and renders only the text from the last block on,
// and an answer of any length costs the same for each token.  Blocks are
// headings, paragraphs, lists, quotes, tables, code and rules.

import { copyAction, el } from "./dom.js";
import { inline } from "./inline.js";

const BLOCK_DEPTH = 8;                // of nested lists and quotes
const DELIMITER_LINE = 1000;    // characters; longer ones are text

const BLANK = /^\s*$/;
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})\s*([^\s`]*)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const DELIMITERS = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;


// The blocks of these lines.  Each has its kind and the number of the line
// after it; nested is false where further nesting is plain text.

function blocks(lines, nested) {
    const found = [];
    let at = 0;

    while (at < lines.length) {
        if (BLANK.test(lines[at])) {
            at++;
            continue;
        }

        const block = fence(lines, at) || heading(lines, at)
                      || rule(lines, at)
                      || (nested && (quote(lines, at) || list(lines, at)))
                      || table(lines, at) || paragraph(lines, at, nested);

        block.start = at;
        found.push(block);
        at = block.end;
    }

    return found;
}


function fence(lines, at) {
    const open = FENCE.exec(lines[at]);

    if (open === null) {
        return null;
    }

    const [, mark, language] = open;
    let end = at + 1;

    while (end < lines.length) {
        const line = lines[end].trim();

        if (line.startsWith(mark) && line === mark[0].repeat(line.length)) {
            break;
        }

        end++;
    }

    return { kind: "code", language, lines: lines.slice(at + 1, end),
             end: Math.min(end + 1, lines.length) };
}


function heading(lines, at) {
    const match = HEADING.exec(lines[at]);

    return match && { kind: "heading", level: match[1].length, end: at + 1,
                      text: match[2].trim().replace(/(?<=^|\s)#+$/, "").trim() };
}


function rule(lines, at) {
    return RULE.test(lines[at]) ? { kind: "rule", end: at + 1 } : null;
}


function quote(lines, at) {
    let end = at;

    while (end < lines.length && QUOTE.test(lines[end])) {
        end++;
    }

    return end === at ? null
        : { kind: "quote", end,
            lines: lines.slice(at, end).map((l) => l.replace(QUOTE, "")) };
}


// An item has the lines that are indented below its text, with blank lines
// between them.

function list(lines, at) {
    const first = ITEM.exec(lines[at]);

    if (first === null) {
        return null;
    }

    const ordered = /\d/.test(first[2]);
    const items = [];
    let loose = false;
    let end = at;

    while (end < lines.length) {
        const match = ITEM.exec(lines[end]);

        if (match === null || /\d/.test(match[2]) !== ordered
            || RULE.test(lines[end]))
        {
            break;
        }

        const indent = match[1].length + match[2].length
                       + Math.min(Math.max(match[3].length, 1), 4);
        const inner = [lines[end].slice(match[0].length)];
        let blank = 0;

        for (end++; end < lines.length; end++) {
            const line = lines[end];
            const depth = line.search(/\S/);

            if (depth === -1) {
                blank++;
                continue;
            }

            if (depth < Math.min(indent, match[1].length + 2)
                && (blank > 0 || starts(line)))
            {
                break;
            }

            loose = loose || blank > 0;
            for ( ; blank > 0; blank--) {
                inner.push("");
            }

            inner.push(line.slice(Math.min(depth, indent)));
        }

        items.push(inner);

        if (blank > 0 && end < lines.length && ITEM.test(lines[end])) {
            loose = true;
        }
    }

    return { kind: "list", ordered, loose, items, end,
             number: ordered ? parseInt(first[2], 10) : 1 };
}


function cells(line) {
    return line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1")
        .split(/(?<!\\)\|/).map((c) => c.trim().replace(/\\\|/g, "|"));
}


function table(lines, at) {
    if (!lines[at].includes("|") || at + 1 >= lines.length
        || lines[at + 1].length > DELIMITER_LINE
        || !lines[at + 1].includes("-") || !DELIMITERS.test(lines[at + 1]))
    {
        return null;
    }

    const head = cells(lines[at]);
    const align = cells(lines[at + 1]).map((c) =>
        c.endsWith(":") ? (c.startsWith(":") ? "center" : "end") : "start");

    if (head.length !== align.length) {
        return null;
    }

    let end = at + 2;

    while (end < lines.length && lines[end].includes("|")) {
        end++;
    }

    return { kind: "table", head, align, end,
             body: lines.slice(at + 2, end).map(cells) };
}


// Whether a line starts a block, which ends a paragraph before it.

function starts(line) {
    return FENCE.test(line) || HEADING.test(line) || RULE.test(line)
           || QUOTE.test(line) || ITEM.test(line);
}


function paragraph(lines, at, nested) {
    let end = at + 1;

    while (end < lines.length && !BLANK.test(lines[end])
           && !(nested && starts(lines[end])))
    {
        end++;
    }

    return { kind: "paragraph", text: lines.slice(at, end).join("\n"), end };
}


function lineBreaks(text) {
    return text.split(/ {2}\n|\\\n/).flatMap((part, i) =>
        (i > 0 ? [el("br")] : []).concat(inline(part.trimEnd())));
}


function codeNode(block) {
    const text = document.createTextNode(block.lines.join("\n"));

    return el("div", { class: "code-block" },
              el("div", { class: "code-head" },
                 el("span", {}, block.language || "text"),
                 copyAction(() => text.data)),
              el("pre", { tabindex: "0" }, el("code", {}, text)));
}


function rowNode(tag, texts, align) {
    return el("tr", {}, align.map((side, i) =>
        el(tag, { class: side }, inline(texts[i] || ""))));
}


function tableNode({ head, body, align }) {
    return el("div", { class: "table", tabindex: "0" },
        el("table", {},
           el("thead", {}, rowNode("th", head, align)),
           el("tbody", {}, body.map((texts) =>
               rowNode("td", texts, align)))));
}


function itemNode(lines, loose, depth) {
    return el("li", {}, blocks(lines, depth < BLOCK_DEPTH).flatMap((part) =>
        part.kind === "paragraph" && !loose ? lineBreaks(part.text)
                                            : [render(part, depth + 1)]));
}


function listNode({ ordered, loose, number, items }, depth) {
    return el(ordered ? "ol" : "ul", number !== 1 ? { start: number } : {},
              items.map((lines) => itemNode(lines, loose, depth)));
}


function render(block, depth = 0) {
    switch (block.kind) {
    case "code":
        return codeNode(block);

    case "heading":
        return el("h" + Math.min(block.level + 1, 6), {},
                  inline(block.text));

    case "rule":
        return el("hr");

    case "quote":
        return el("blockquote", {}, blocks(block.lines, depth < BLOCK_DEPTH)
            .map((part) => render(part, depth + 1)));

    case "list":
        return listNode(block, depth);

    case "table":
        return tableNode(block);

    default:
        return el("p", {}, lineBreaks(block.text));
    }
}


function same(a, b) {
    return a.length === b.length && a.every((text, i) => text === b[i]);
}


// Appends to a text node what a text has more than it.

function growText(node, text) {
    if (!text.startsWith(node.data)) {
        return false;
    }

    node.appendData(text.slice(node.data.length));

    return true;
}


// Replaces the children of a node from the first row on that has changed.

function growRows(node, before, now, make) {
    const changed = now.findIndex((row, i) => i >= before.length
                                              || !same(row, before[i]));
    const start = changed === -1 ? now.length : changed;

    while (node.children.length > start) {
        node.lastElementChild.remove();
    }

    for (const row of now.slice(start)) {
        node.append(make(row));
    }

    return true;
}


// Writes the growing text into a container.

export class Markdown {
    constructor(container) {
        this.container = container;
        this.tail = "";         // the text of what may still change
        this.live = [];         // its nodes, the last ones of the container
        this.last = null;       // the block of the last node
    }

    append(text) {
        this.tail += text.replace(/\r\n?/g, "\n");
        this.settle();
        this.show(blocks(this.tail.split("\n"), true));
    }

    // Moves the blocks that are final from the tail into the page.  Only whole
    // lines count: "-" becomes an item of the list before it with the space
    // that may follow.

    settle() {
        const whole = this.tail.lastIndexOf("\n");

        if (whole === -1) {
            return;
        }

        const lines = this.tail.slice(0, whole).split("\n");
        const found = blocks(lines, true);

        if (found.length < 2) {
            return;
        }

        const final = found.slice(0, -1);
        const next = found[found.length - 1].start;

        this.show(final);
        this.live = [];
        this.last = null;
        this.tail = this.tail.slice(
            lines.slice(0, next).reduce((n, line) => n + line.length + 1, 0));
    }

    // Makes these blocks the live ones.  Code, a list and a table that have grown
    // keep their nodes, which is faster, and a selection in them stays.

    show(found) {
        const grown = this.last !== null && found.length === 1
                      && this.live.length === 1 && this.grow(found[0]);

        if (!grown) {
            const nodes = found.map((block) => render(block));

            for (const node of this.live) {
                node.remove();
            }

            for (const node of nodes) {
                this.container.append(node);
            }

            this.live = nodes;
        }

        this.last = found.length > 0 ? found[found.length - 1] : null;
    }

    grow(block) {
        const { last } = this;
        const [node] = this.live;

        if (block.kind !== last.kind) {
            return false;
        }

        switch (block.kind) {
        case "code":
            return block.language === last.language
                   && growText(node.querySelector("code").firstChild,
                               block.lines.join("\n"));

        case "list":
            return block.ordered === last.ordered && block.loose === last.loose
                   && growRows(node, last.items, block.items,
                               (lines) => itemNode(lines, block.loose, 0));

        case "table":
            return same(block.head, last.head) && same(block.align, last.align)
                   && growRows(node.querySelector("tbody"), last.body,
                               block.body,
                               (texts) => rowNode("td", texts, block.align));

        default:
            return false;
        }
    }
}
