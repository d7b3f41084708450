// Copyright (C) The nginx-dsa authors
//
// Server-sent events of a fetch() response.  EventSource cannot be used: it
// sends neither a body nor an Authorization header.


// Yields the data of each event.  Comments, which keep the connection alive,
// are skipped, and so is an event that the end of the stream cut off.

export async function* events(stream) {
    const reader = stream.getReader();
    const decoder = new TextDecoder();
    let text = "";
    let data = [];

    try {
        for (;;) {
            const { done, value } = await reader.read();

            if (done) {
                return;
            }

            const lines = (text + decoder.decode(value, { stream: true }))
                .split("\n");
            text = lines.pop();

            for (const raw of lines) {
                const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;

                if (line.startsWith("data:")) {
                    data.push(line.slice(line[5] === " " ? 6 : 5));

                } else if (line === "" && data.length > 0) {
                    yield data.join("\n");
                    data = [];
                }
            }
        }

    } finally {
        reader.cancel().catch(() => {});
    }
}
