// Copyright (C) The nginx-dsa authors
//
// Uses the Responses API with OpenAI's client and prints what it got as one
// line of JSON.
//
//     node responses.mjs BASE_URL COMMAND JSON
//
// Commands: create, stream (the same request both ways), retrieve, delete and
// items (of an id), loop (three rounds of tools; "stored": with
// previous_response_id, or with encrypted reasoning).

import OpenAI from "openai";

const [baseURL, command, text] = process.argv.slice(2);
const args = JSON.parse(text ?? "{}");
const client = new OpenAI({ baseURL, apiKey: "sk-test", maxRetries: 0,
                            timeout: 60000 });

const rounds = 3;

const commands = {

    async create() {
        return client.responses.create(args);
    },

    // events as they come, and what the client's helper makes of them

    async stream() {
        const types = [];
        let deltas = "";

        const s = client.responses.stream(args);

        s.on("event", (e) => types.push(e.type));
        s.on("response.output_text.delta", (e) => { deltas += e.delta; });

        return { final: await s.finalResponse(), types, deltas };
    },

    async retrieve() {
        return client.responses.retrieve(args.id);
    },

    async delete() {
        return { deleted: (await client.responses.delete(args.id)) ?? null };
    },

    async items() {
        const list = [];

        for await (const item of client.responses.inputItems.list(
                       args.id, { order: "asc", limit: 2 }))
        {
            list.push(item);
        }

        return list;
    },

    async loop() {
        const { stored, ...request } = args;
        const input = [ ...request.input ];
        let last, items = input;

        for (let round = 0; round <= rounds; round++) {
            last = await client.responses.create(stored
                ? { ...request, input: items,
                    previous_response_id: last?.id }
                : { ...request, input, store: false,
                    include: [ "reasoning.encrypted_content" ] });

            const results = last.output
                .filter((item) => item.type === "function_call")
                .map((item) => ({
                    type: "function_call_output", call_id: item.call_id,
                    output: `result ${round} of ${item.name}`,
                }));

            // a client of OpenAI's keeps no content of reasoning

            input.push(...last.output.map(({ content, ...item }) =>
                item.type === "reasoning" ? item : { ...item, content }),
                       ...results);
            items = results;
        }

        return last;
    },
};

try {
    console.log(JSON.stringify(await commands[command]()));

} catch (e) {
    console.log(JSON.stringify({
        failed: e.constructor.name, status: e.status ?? null,
        message: e.message, param: e.param ?? null,
    }));
}
