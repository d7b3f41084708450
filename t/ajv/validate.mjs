// Copyright (C) The nginx-dsa authors
//
// Validates answers with ajv:
//
//     node validate.mjs SCHEMA < ANSWERS
//
// ANSWERS has a JSON string with an answer in each line.  Prints a line of
// JSON: how many are valid, and the first one that is not.

import { readFileSync } from "node:fs";

import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// a multiple of 0.01 is only nearly one as a double

const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9 });

addFormats(ajv);

const validate = ajv.compile(JSON.parse(process.argv[2]));
const lines = readFileSync(0, "utf8").split("\n").filter((l) => l !== "");

let valid = 0;
let first = null;

for (const line of lines) {
    const answer = JSON.parse(line);
    let why = null;

    try {
        const value = JSON.parse(answer);

        if (!validate(value)) {
            why = ajv.errorsText(validate.errors);
        }
    } catch (e) {
        why = String(e);
    }

    if (why === null) {
        valid++;
    } else {
        first ??= `${answer.slice(0, 300)}: ${why}`;
    }
}

console.log(JSON.stringify({ answers: lines.length, valid, first }));
