// Copyright (C) The nginx-dsa authors
//
// The tools of a chat: a calculator that runs on this page, and definitions
// that the user pastes and whose calls the user answers.

const CALCULATOR = {
    type: "function",
    function: {
        name: "calculator",
        description: "Computes an arithmetic expression",
        parameters: {
            type: "object",
            properties: { expression: { type: "string" } },
            required: ["expression"],
        },
    },
};

const LONGEST = 1000;           // characters of an expression


// The value of an expression of numbers, + - * / ^ % and brackets.  Throws an
// Error that describes what is wrong.

export function calculate(expression) {
    if (expression.length > LONGEST) {
        throw new Error(`expected at most ${LONGEST} characters`);
    }

    const tokens = expression.match(/\d+(?:\.\d+)?|\.\d+|[-+*/^%()]|[^\s]/g)
                   || [];
    let at = 0;

    function primary() {
        const token = tokens[at++];

        if (token === "(") {
            const value = sum();

            if (tokens[at++] !== ")") {
                throw new Error("expected \")\"");
            }

            return value;
        }

        if (token === undefined || !/^[\d.]+$/.test(token)) {
            throw new Error(`expected a number, not "${token ?? "the end"}"`);
        }

        return Number(token);
    }

    function power() {
        const base = primary();

        if (tokens[at] !== "^") {
            return base;
        }

        at++;

        return base ** unary();
    }

    function unary() {
        if (tokens[at] === "-") {
            at++;
            return -unary();
        }

        return power();
    }

    function product() {
        let value = unary();

        while (["*", "/", "%"].includes(tokens[at])) {
            const operator = tokens[at++];
            const right = unary();

            value = operator === "*" ? value * right
                    : operator === "/" ? value / right : value % right;
        }

        return value;
    }

    function sum() {
        let value = product();

        while (tokens[at] === "+" || tokens[at] === "-") {
            value += tokens[at++] === "+" ? product() : -product();
        }

        return value;
    }

    const value = sum();

    if (at < tokens.length) {
        throw new Error(`unexpected "${tokens[at]}"`);
    }

    if (!Number.isFinite(value)) {
        throw new Error("the value is not finite");
    }

    return Number(value.toPrecision(12));
}


// The definitions of this text.  Throws an Error for the user.

export function readTools(text) {
    if (text.trim() === "") {
        return [];
    }

    let list;

    try {
        list = JSON.parse(text);

    } catch (error) {
        throw new Error(`This is not JSON: ${error.message}`);
    }

    if (!Array.isArray(list)) {
        throw new Error("Expected a JSON array of definitions.");
    }

    for (const tool of list) {
        if (typeof tool?.function?.name !== "string") {
            throw new Error("Expected {\"type\": \"function\", \"function\": "
                            + "{\"name\": …}} in the array.");
        }
    }

    return list;
}


export function allTools(calculator, own) {
    return calculator ? [CALCULATOR, ...own] : own;
}


// The result of a call of a tool that runs here, or null for another tool.

export function runTool(name, text, calculator) {
    if (!calculator || name !== CALCULATOR.function.name) {
        return null;
    }

    try {
        return JSON.stringify(
            { result: calculate(String(JSON.parse(text).expression)) });

    } catch (error) {
        return JSON.stringify({ error: error.message });
    }
}
