// Copyright (C) The nginx-dsa authors
//
// Validates answers with ajv:
//
//     node validate.mjs < JOBS
//
// JOBS is a JSON array of objects: the text of a schema, and the file of its
// answers, each a JSON string on a line of its own.  Prints an array with how
// many answers of each are valid, and the first one that is not.

import { readFileSync } from "node:fs";

import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// a multiple of 0.01 is only nearly one as a double

const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9 });

addFormats(ajv);

function check({ schema, answers }) {
    const validate = ajv.compile(JSON.parse(schema));
    const lines = readFileSync(answers, "utf8").split("\n")
        .filter((l) => l !== "");

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

    return { answers: lines.length, valid, first };
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(check)));
