// Copyright (C) The nginx-dsa authors
//
// Markdown within a line: code, bold, italic, struck out, links.  inline(text)
// returns DOM nodes.  Time is linear in the text for any text: a search for an
// end that failed once is not repeated further right, where it would fail too.

import { el } from "./dom.js";

const EMPHASIS_DEPTH = 6;                // of nested emphasis
const LABEL = 1000;             // characters of a link's text
const TARGET = 2000;            // and of its address

const SPECIAL = /[\\`*_~[!]|https?:\/\//g;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const SPACE = /\s/;

const EMPHASIS = [["***", "strong", "em"], ["**", "strong"],
                  ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];


// Only an absolute address with one of these schemes becomes a link, so that
// "javascript:" and addresses of this server do not.

export function safeLink(address) {
    if (!/^(?:https?:\/\/|mailto:)/i.test(address)) {
        return null;
    }

    try {
        const { protocol, href } = new URL(address);

        return ["http:", "https:", "mailto:"].includes(protocol) ? href
                                                                 : null;
    } catch {
        return null;
    }
}


function link(address, children) {
    const href = safeLink(address);

    if (href === null) {
        return null;
    }

    return el("a", { href, target: "_blank", title: href,
                     rel: "noopener noreferrer nofollow" }, children);
}


class Inline {
    constructor(text, depth) {
        this.text = text;
        this.depth = depth;
        this.nodes = [];
        this.plain = 0;         // where the text begins that is not in nodes
        this.failed = new Set();
    }

    parse() {
        const { text } = this;
        let at = 0;

        for (;;) {
            SPECIAL.lastIndex = at;
            const match = SPECIAL.exec(text);

            if (match === null) {
                break;
            }

            at = this.special(match.index, match[0]);
        }

        this.flush(text.length);

        return this.nodes;
    }

    // Appends the plain text that ends here.

    flush(end) {
        if (end > this.plain) {
            this.nodes.push(document.createTextNode(
                this.text.slice(this.plain, end)));
        }

        this.plain = end;
    }

    // Replaces the text from start to end by a node; returns the end.

    put(start, end, node) {
        this.flush(start);
        this.nodes.push(node);
        this.plain = end;

        return end;
    }

    // Returns where the search goes on.

    special(start, token) {
        const { text } = this;

        switch (token) {
        case "\\":
            if (PUNCTUATION.test(text[start + 1] || "")) {
                this.flush(start);
                this.plain = start + 1;
                return start + 2;
            }

            return start + 1;

        case "`":
            return this.code(start);

        case "[":
            return this.link(start, start);

        case "!":
            return text[start + 1] === "[" ? this.link(start, start + 1)
                                           : start + 1;

        case "*":
        case "_":
        case "~":
            return this.emphasis(start);

        default:
            return this.bare(start);
        }
    }

    code(start) {
        const { text } = this;
        let from = start;

        while (text[from] === "`") {
            from++;
        }

        const ticks = text.slice(start, from);
        let end = this.failed.has(ticks) ? -1 : text.indexOf(ticks, from);

        while (end !== -1 && text[end + ticks.length] === "`") {
            while (text[end] === "`") {
                end++;
            }

            end = text.indexOf(ticks, end);
        }

        if (end === -1) {
            this.failed.add(ticks);
            return from;
        }

        const code = text.slice(from, end);
        const padded = code.startsWith(" ") && code.endsWith(" ")
                       && code.trim() !== "";

        return this.put(start, end + ticks.length,
                        el("code", {}, padded ? code.slice(1, -1) : code));
    }

    // [text](address); of an image only its text, as a link, because the page
    // loads nothing.

    link(start, open) {
        const { text } = this;
        const window = text.slice(open, open + LABEL + TARGET + 4);
        const match = /^\[([^\[\]]*)\]\(\s*<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\s*\)/
            .exec(window);

        if (match === null || match[1].length > LABEL) {
            return open + 1;
        }

        const label = match[1] === "" ? match[2] : match[1];
        const node = link(match[2], this.inner(label));

        return node === null ? open + 1
                             : this.put(start, open + match[0].length, node);
    }

    bare(start) {
        const match = /^https?:\/\/[^\s<>"'`*\\]+/
            .exec(this.text.slice(start, start + TARGET));

        if (match === null) {
            return start + 4;
        }

        let address = match[0].replace(/[.,;:!?]+$/, "");

        if (address.endsWith(")") && !address.includes("(")) {
            address = address.slice(0, -1);
        }

        const node = link(address, [address]);

        return node === null ? start + 4
                             : this.put(start, start + address.length, node);
    }

    emphasis(start) {
        const { text } = this;

        for (const [mark, ...tags] of EMPHASIS) {
            if (!text.startsWith(mark, start)) {
                continue;
            }

            const end = this.closing(mark, start);

            if (end === -1) {
                continue;
            }

            let node = null;

            for (const tag of tags.reverse()) {
                node = el(tag, {}, node === null
                    ? this.inner(text.slice(start + mark.length, end))
                    : node);
            }

            return this.put(start, end + mark.length, node);
        }

        let next = start + 1;

        while (text[next] === text[start]) {
            next++;
        }

        return next;
    }

    // Where the emphasis ends that begins here, or -1.  Underscores inside of
    // a word are letters.

    closing(mark, start) {
        const { text } = this;
        const inside = start + mark.length;

        if (this.depth >= EMPHASIS_DEPTH || this.failed.has(mark)
            || SPACE.test(text[inside] || " ")
            || (mark[0] === "_" && WORD.test(text[start - 1] || "")))
        {
            return -1;
        }

        let end = text.indexOf(mark, inside + 1);

        for ( ; end !== -1; end = text.indexOf(mark, end + 1)) {
            const after = text[end + mark.length] || "";

            if (!SPACE.test(text[end - 1])
                && text[end - 1] !== "\\"
                && (mark.length > 1 || (after !== mark
                                        && text[end - 1] !== mark))
                && (mark[0] !== "_" || !WORD.test(after)))
            {
                return end;
            }
        }

        this.failed.add(mark);

        return -1;
    }

    inner(text) {
        return new Inline(text, this.depth + 1).parse();
    }
}


export function inline(text) {
    return new Inline(text, 0).parse();
}
