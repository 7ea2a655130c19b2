// A scripted model that speaks OpenAI's chat completions on loopback, and keeps every request it got.
//
// What it answers is decided by the live user message of the request:
//   use TOOL {json}   one call of that tool; its result is then quoted
//   anything else     "Understood: " and the beginning of the message
// A request without tools that asks for a summary gets one with the sections the host's audit wants.

import http from "node:http";

/** The text of a message's content. */
export function textOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("\n");
}

export const isInternal = (m) => m.role === "user" && textOf(m.content).startsWith("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>");
export const isRecall = (m) => m.role === "user" && textOf(m.content).startsWith("<hark-recall ");

/** The index of the user message that is being answered, -1 where there is none. */
export function liveUser(messages) {
  return messages.findLastIndex((m) => m.role === "user" && !isInternal(m) && !isRecall(m));
}

export class Model {
  requests = []; // { at, body } in order of arrival
  calls = 0;

  async listen() {
    this.server = http.createServer((request, response) => {
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => this.serve(request.url, Buffer.concat(parts).toString("utf8"), response));
    });
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}/v1`;
    return this;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  serve(url, text, response) {
    if (url.endsWith("/models")) return send(response, { object: "list", data: [{ id: "scripted", object: "model" }] });
    if (!url.endsWith("/chat/completions")) return send(response, { error: { message: `nothing at ${url}` } }, 404);
    const body = JSON.parse(text);
    this.requests.push({ at: performance.now(), body });
    const answer = this.decide(body);
    const size = Math.ceil(text.length / 4);
    const whole = {
      id: `chatcmpl-${this.requests.length}`, created: 1_790_000_000, model: body.model,
      usage: { prompt_tokens: size, completion_tokens: 8, total_tokens: size + 8 },
    };
    const finish = answer.tool_calls ? "tool_calls" : "stop";
    if (!body.stream) {
      const choice = { index: 0, finish_reason: finish, message: { role: "assistant", content: null, ...answer } };
      return send(response, { ...whole, object: "chat.completion", choices: [choice] });
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const event = (choices, usage) =>
      response.write(`data: ${JSON.stringify({ ...whole, usage, object: "chat.completion.chunk", choices })}\n\n`);
    event([{ index: 0, delta: { role: "assistant", ...answer }, finish_reason: null }]);
    event([{ index: 0, delta: {}, finish_reason: finish }]);
    event([], whole.usage);
    response.end("data: [DONE]\n\n");
  }

  decide(body) {
    const messages = body.messages.filter((m) => !isInternal(m));
    const last = messages.at(-1);
    if (!body.tools?.length) {
      const heads = ["Decisions", "Open TODOs", "Constraints/Rules", "Pending user asks", "Exact identifiers"];
      return { content: heads.map((head) => `## ${head}\n${head === "Decisions" ? "The conversation so far was small talk." : "- none"}`).join("\n\n") };
    }
    if (last?.role === "tool") return { content: `The tool says: ${textOf(last.content).replace(/\s+/g, " ").slice(0, 120)}` };
    const said = textOf(messages[liveUser(messages)]?.content).replace(/\n+Runtime: agent=.*$/s, "");
    const use = /use (\w+) (\{.*\})/s.exec(said);
    if (use) {
      const call = { index: 0, id: `call_scripted_${++this.calls}`, type: "function", function: { name: use[1], arguments: use[2] } };
      return { content: null, tool_calls: [call] };
    }
    return { content: `Understood: ${said.replace(/^\[[^\]]*\] /, "").slice(0, 80)}` };
  }
}

function send(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}
