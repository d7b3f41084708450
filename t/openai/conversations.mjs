// Copyright (C) The nginx-dsa authors
//
// Uses OpenAI's conversations with OpenAI's client and prints what it got as
// one line of JSON.
//
//     node conversations.mjs BASE_URL COMMAND JSON
//
// A command is a method of the client: create, retrieve, update and delete of a
// conversation, addItems, item, listItems and deleteItem of its items, and
// respond, which creates a response.  listItems reads all pages.

import OpenAI from "openai";

const [baseURL, command, text] = process.argv.slice(2);
const { id, item, ...args } = JSON.parse(text ?? "{}");
const client = new OpenAI({ baseURL, apiKey: "sk-test", maxRetries: 0,
                            timeout: 60000 });
const conversations = client.conversations;

const commands = {
    create: () => conversations.create(args),
    retrieve: () => conversations.retrieve(id),
    update: () => conversations.update(id, args),
    delete: () => conversations.delete(id),

    addItems: () => conversations.items.create(id, args),
    item: () => conversations.items.retrieve(item, { conversation_id: id,
                                                     ...args }),
    deleteItem: () => conversations.items.delete(item,
                                                 { conversation_id: id }),

    async listItems() {
        const list = [];

        for await (const one of conversations.items.list(id, args)) {
            list.push(one);
        }

        return list;
    },

    respond: () => client.responses.create(args),

    // two pages one after the other, as the API returns them

    async pages() {
        const first = await conversations.items.list(id, args);
        const second = await first.getNextPage();

        return [ first, second ].map((p) => ({
            data: p.data.map((one) => one.id), has_more: p.has_more,
            last_id: p.last_id,
        }));
    },

    // turns that begin one after the other, without waiting

    async together() {
        const all = [];

        for (const input of args.inputs) {
            all.push(client.responses.create({ ...args.request, input,
                                               conversation: id })
                     .then((r) => r.status, (e) => e.status));
        }

        return Promise.all(all);
    },
};

try {
    console.log(JSON.stringify(await commands[command]()));

} catch (e) {
    console.log(JSON.stringify({
        failed: e.constructor.name, status: e.status ?? null,
        message: e.message, param: e.param ?? null, code: e.code ?? null,
    }));
}
