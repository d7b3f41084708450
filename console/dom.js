// Copyright (C) The nginx-dsa authors
//
// Makes elements.  Text from the model, from tools and from the server reaches
// the page only as text nodes: no module assigns HTML, and the page's policy
// (trusted types without a policy) would refuse it.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);


function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name === "on") {
            for (const [event, handler] of Object.entries(value)) {
                node.addEventListener(event, handler);
            }

        } else if (value === true) {
            node.setAttribute(name, "");

        } else if (value !== false && value !== null && value !== undefined) {
            node.setAttribute(name, value);
        }
    }

    for (const child of children.flat()) {
        if (child !== null && child !== undefined) {
            node.append(child);
        }
    }

    return node;
}


// el("a", { href, on: { click } }, "text", node, [node, node], null): a list of
// any length is passed as an array, because arguments are on the stack

export function el(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
}


export function svg(tag, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}


// Strokes in a square of 20 units.

const ICONS = {
    plus: "M10 4v12M4 10h12",
    options: "M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4",
    close: "M5 5l10 10M15 5L5 15",
    send: "M10 16V4M5 9l5-5 5 5",
    stop: "M6 6h8v8H6z",
    sun: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v1.5M10 16.5V18"
         + "M2 10h1.5M16.5 10H18M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1"
         + "M15.7 4.3l-1.1 1.1M5.4 14.6l-1.1 1.1",
    moon: "M16.5 11.8A7 7 0 0 1 8.2 3.5a7 7 0 1 0 8.3 8.3z",
    screen: "M3 4.5h14v9H3zM7 17h6M10 13.5V17",
    copy: "M7 7h9v9H7zM4 13V4h9",
    again: "M15.5 8A6 6 0 1 0 16 11.5M16 4v4h-4",
    edit: "M4 16l1-3.6L13.2 4.2l2.6 2.6L7.6 15z",
};


export function icon(name) {
    return svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true",
                        class: "glyph" },
               svg("path", { d: ICONS[name] }));
}


// A small button of an icon and a word.

export function action(name, label, handler) {
    return el("button", { type: "button", class: "action " + name,
                          on: { click: handler } },
              icon(name), label);
}


// Copies a text; the button reports it for a moment.

export function copyAction(text) {
    const word = el("span", {}, "Copy");

    return el("button", { type: "button", class: "action", on: {
        async click() {
            try {
                await navigator.clipboard.writeText(text());
                word.textContent = "Copied";

            } catch {
                word.textContent = "Not permitted";
            }

            setTimeout(() => { word.textContent = "Copy"; }, 1500);
        } } }, icon("copy"), word);
}


export function announce(text) {
    $("announcer").textContent = text;
}
