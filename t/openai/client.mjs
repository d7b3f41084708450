// Copyright (C) The nginx-dsa authors
//
// Talks to a server with OpenAI's client and prints what it got as one line
// of JSON.
//
//     node client.mjs BASE_URL COMMAND JSON
//
// Commands: chat, stream (the same request both ways), choices, choicesStream,
// completion, completionStream, models, model.

import OpenAI from "openai";

const [baseURL, command, text] = process.argv.slice(2);
const args = JSON.parse(text ?? "{}");
const client = new OpenAI({ baseURL, apiKey: "sk-test", maxRetries: 0,
                            timeout: 120000 });

const commands = {

    async chat() {
        const c = await client.chat.completions.create(args);
        const choice = c.choices[0];

        return {
            object: c.object,
            content: choice.message.content,
            reasoning: choice.message.reasoning_content ?? null,
            role: choice.message.role,
            finish: choice.finish_reason,
            usage: c.usage,
        };
    },

    async stream() {
        const s = await client.chat.completions.create(
            { ...args, stream: true });
        const got = { content: "", reasoning: null, chunks: 0, usage: null };

        for await (const chunk of s) {
            const choice = chunk.choices[0];

            got.chunks++;
            got.object = chunk.object;
            got.usage = chunk.usage ?? got.usage;

            if (choice === undefined) {
                continue;
            }

            got.content += choice.delta.content ?? "";
            got.role = choice.delta.role ?? got.role;
            got.finish = choice.finish_reason ?? got.finish;

            if (choice.delta.reasoning_content != null) {
                got.reasoning ??= "";
                got.reasoning += choice.delta.reasoning_content;
            }
        }

        return got;
    },

    async choices() {
        return await client.chat.completions.create(args);
    },

    // the client joins the chunks of each choice itself

    async choicesStream() {
        return await client.chat.completions.stream(args)
            .finalChatCompletion();
    },

    async completion() {
        const c = await client.completions.create(args);
        const choice = c.choices[0];

        return {
            object: c.object,
            text: choice.text,
            logprobs: choice.logprobs,
            finish: choice.finish_reason,
            usage: c.usage,
        };
    },

    async completionStream() {
        const s = await client.completions.create({ ...args, stream: true });
        const got = { text: "", logprobs: null };

        for await (const chunk of s) {
            const choice = chunk.choices[0];

            got.object = chunk.object;
            got.text += choice.text;
            got.finish = choice.finish_reason ?? got.finish;
            got.usage = chunk.usage ?? got.usage;

            for (const key of Object.keys(choice.logprobs ?? {})) {
                got.logprobs ??= {};
                got.logprobs[key] = [ ...got.logprobs[key] ?? [],
                                      ...choice.logprobs[key] ];
            }
        }

        return got;
    },

    async model() {
        return await client.models.retrieve(args.id);
    },

    async models() {
        const list = [];

        for await (const model of client.models.list()) {
            list.push(model.id);
        }

        return { list };
    },
};

try {
    console.log(JSON.stringify(await commands[command]()));

} catch (e) {
    console.log(JSON.stringify({
        error: e.constructor.name, status: e.status ?? null,
        message: e.message, param: e.param ?? null, type: e.type ?? null,
    }));
}
