/** Holds a whole conversation with the types that openapi-typescript makes of the description, and prints what it read. */

import createClient from "openapi-fetch";

import type { components, paths } from "./schema.ts";

declare const process: { env: Record<string, string | undefined> };

type Schemas = components["schemas"];

const api = createClient<paths>({
  baseUrl: process.env.URL ?? "",
  headers: { Authorization: `Bearer ${process.env.TOKEN}` },
});

function needed<Data>(answer: { data?: Data; error?: unknown; response: Response }): Data {
  if (answer.data === undefined) throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Schemas["Event"]> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const line of blocks.flatMap((block) => block.split("\n"))) {
      if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
    }
  }
}

const made = needed(await api.POST("/api/v1/conversations", { body: { title: "Lisbon" } }));
const params = { path: { conversation_id: made.id } };
const MESSAGES = "/api/v1/conversations/{conversation_id}/messages";

const first = await api.POST(MESSAGES, { params, body: { content: "We fly on 3 May." } });
const waited = needed(first) as Schemas["Answer"];

const later = await api.POST(MESSAGES, {
  params,
  headers: { Prefer: "respond-async" },
  body: { content: "When do we fly?" },
});
const accepted = needed(later) as Schemas["Accepted"];
let run: Schemas["Run"];
do {
  await new Promise((resolve) => setTimeout(resolve, 50));
  run = needed(await api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: accepted.run_id } } }));
} while (run.status === "queued" || run.status === "running");

const streamed = await api.POST(MESSAGES, {
  params,
  body: { content: "In words?", stream: true },
  parseAs: "stream",
});
let told = "";
let end = "";
for await (const event of eventsOf(needed(streamed) as ReadableStream<Uint8Array>)) {
  if (event.type === "text.delta") told += event.text;
  if (event.type === "run.finished") end = event.status;
}

const page = needed(await api.GET(MESSAGES, { params }));
await api.DELETE("/api/v1/conversations/{conversation_id}", { params });
const gone = await api.GET("/api/v1/conversations/{conversation_id}", { params });

console.log(
  JSON.stringify({
    waited: waited.message.content,
    polled: run.status,
    told,
    end,
    read: page.items.map((message) => [message.role, message.content]),
    gone: [gone.response.status, gone.error?.error.code],
  }),
);
