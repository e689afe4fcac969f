// Written by `ekphory hook install opencode`; one file for opencode 1.18.29 and later (server) and 2 (setup).
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
const LIMIT = { prompt: 8000, other: 30000 }            // milliseconds
function run(event, payload) {                          // argv, no shell; never throws; "" on any failure
  return new Promise((resolve) => {
    let out = "", done = false, timer
    const end = (s) => { if (!done) { done = true; clearTimeout(timer); resolve(s) } }
    let p
    try { p = spawn("__PROGRAM__", [..."__BEFORE__", "hook", "run", "opencode", event, ..."__OPTIONS__"], { stdio: ["pipe", "pipe", "ignore"], shell: false }) }
    catch { return end("") }
    timer = setTimeout(() => { p.kill("SIGKILL"); end("") }, event === "prompt" ? LIMIT.prompt : LIMIT.other)
    p.on("error", () => end(""))
    p.stdin.on("error", () => {})
    p.stdout.setEncoding("utf8")
    p.stdout.on("data", (d) => { out += d })
    p.on("close", (code) => end(code === 0 ? out.trim() : ""))
    p.stdin.end(JSON.stringify(payload))
  })
}
const A = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const partID = () => "prt_" + ((BigInt(Date.now()) * 4096n + 4095n) & 0xffffffffffffn).toString(16).padStart(12, "0")
  + [...randomBytes(14)].map((b) => A[b % 62]).join("")
const text = (parts) => parts.filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text).join("\n")

async function server({ client, directory, worktree }) {            // ---- V1
  const live = new Set()
  const base = (id) => ({ session_id: id, cwd: directory, worktree })
  const messages = async (id) => { try { return (await client.session.messages({ path: { id } })).data ?? [] } catch { return [] } }
  return {
    "chat.message": async (input, output) => {
      const first = !live.has(input.sessionID); live.add(input.sessionID)
      const add = await run("prompt", { ...base(input.sessionID), first, message_id: output.message.id, prompt: text(output.parts) })
      if (add) output.parts.push({ id: partID(), sessionID: input.sessionID, messageID: output.message.id, type: "text", text: add, synthetic: true })
    },
    "experimental.session.compacting": async (input, output) => {
      const add = await run("compact", { ...base(input.sessionID), messages: await messages(input.sessionID) })
      if (add) output.context.push(add)
    },
    event: async ({ event }) => {
      const p = event.properties
      if (event.type === "session.created" && !p.info.parentID) { live.add(p.info.id); await run("session-start", base(p.info.id)) }
      if (event.type === "session.idle") await run("turn-end", { ...base(p.sessionID), messages: await messages(p.sessionID) })
      if (event.type === "session.deleted") { live.delete(p.info.id); await run("session-end", { ...base(p.info.id), reason: "deleted" }) }
    },
    dispose: async () => { await Promise.all([...live].map((id) => run("session-end", { ...base(id), reason: "dispose" }))) },
  }
}

async function setup(ctx) {                                          // ---- V2
  const cwd = ctx.location?.directory, live = new Set(), reply = new Map(), extra = new Map(), stop = new AbortController()
  const base = (id) => ({ session_id: id, cwd })
  const messages = async (id) => { try { return await ctx.session.context({ sessionID: id }) } catch { return [] } }
  const regs = []
  regs.push(await ctx.session.hook("prompt", async (e) => {
    live.add(e.sessionID)
    extra.set(e.sessionID, await run("prompt", { ...base(e.sessionID), message_id: e.messageID, prompt: e.prompt.text }))
  }))
  regs.push(await ctx.session.hook("context", (e) => {               // runs before every model request of the turn; not persisted
    const add = extra.get(e.sessionID); if (add) e.system.push({ type: "text", text: add })
  }))
  regs.push(await ctx.session.hook("compaction", async (e) => {
    const add = await run("compact", { ...base(e.sessionID), messages: e.messages })
    if (add) e.system.push({ type: "text", text: add })
  }))
  const bus = (async () => {
    for await (const e of ctx.event.subscribe({ signal: stop.signal })) {
      const id = e.data?.sessionID
      if (!id || (e.location?.directory && cwd && e.location.directory !== cwd)) continue
      if (e.type === "session.text.ended" && live.has(id)) reply.set(id, e.data.text)
      if (e.type === "session.execution.succeeded" && live.has(id))
        void messages(id).then((m) => run("turn-end", { ...base(id), last_assistant_message: reply.get(id) ?? "", messages: m }))
      if (e.type === "session.deleted" && live.delete(id)) void run("session-end", { ...base(id), reason: "deleted" })
    }
  })().catch(() => {})
  return async () => {
    stop.abort(); await bus
    await Promise.allSettled([...regs.map((r) => r.dispose()), ...[...live].map((id) => run("session-end", { ...base(id), reason: "dispose" }))])
  }
}
export default { id: "ekphory", server, setup }
