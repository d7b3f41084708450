// Copyright (C) The nginx-dsa authors
//
// Renders long texts with the page's Markdown, without a browser: the elements
// are only counted.  Prints JSON: for each text the number of its nodes or the
// error, and the CPU time in microseconds.
//
//     node markdown.mjs DIRECTORY < TEXTS

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

let nodes = 0;


class Node {
    constructor(data = "") {
        this.data = data;
        nodes++;
    }

    append() {}
    addEventListener() {}
    setAttribute() {}
}


globalThis.document = {
    createElement: () => new Node(),
    createElementNS: () => new Node(),
    createTextNode: (data) => new Node(data),
};

const { Markdown } = await import(pathToFileURL(process.argv[2]
                                                + "/markdown.js"));
const results = {};

for (const [name, text] of Object.entries(JSON.parse(readFileSync(0)))) {
    const start = process.cpuUsage().user;
    let error = null;

    nodes = 0;

    try {
        new Markdown(new Node()).append(text);

    } catch (e) {
        error = String(e);
    }

    results[name] = { nodes, error, cpu: process.cpuUsage().user - start };
}

console.log(JSON.stringify(results));
