// Written by `ekphory hook install openclaw`.
import { spawn } from "node:child_process"
function run(event, payload, ms) {                      // argv, no shell; "" on any failure
  return new Promise((resolve) => {
    let out = "", done = false, timer
    const end = (s) => { if (!done) { done = true; clearTimeout(timer); resolve(s) } }
    let p
    try { p = spawn("__PROGRAM__", [..."__BEFORE__", "hook", "run", "openclaw", event, ..."__OPTIONS__"], { stdio: ["pipe", "pipe", "ignore"], shell: false }) }
    catch { return end("") }
    timer = setTimeout(() => { p.kill("SIGKILL"); end("") }, ms)
    p.on("error", () => end(""))
    p.stdin.on("error", () => {})
    p.stdout.setEncoding("utf8")
    p.stdout.on("data", (d) => { out += d })
    p.on("close", (code) => end(code === 0 ? out.trim() : ""))
    p.stdin.end(JSON.stringify(payload))
  })
}
const base = (event, ctx) => ({
  session_id: event.sessionId ?? ctx.sessionId, session_key: event.sessionKey ?? ctx.sessionKey, agent_id: ctx.agentId,
  run_id: ctx.runId, cwd: ctx.workspaceDir, trigger: ctx.trigger, provenance: ctx.inputProvenance?.kind, channel: ctx.channel,
})
export default {
  id: "ekphory", name: "Ekphory", description: "Memory hooks.",
  register(api) {                                       // must be synchronous
    api.on("before_prompt_build", async (event, ctx) => {
      const add = await run("prompt", { ...base(event, ctx), prompt: event.currentUserMessage ?? event.prompt,
        message_id: event.currentUserMessageId }, 8000)
      if (add) return { prependContext: add }
    }, { timeoutMs: 10000 })
    api.on("agent_end", async (event, ctx) => { await run("turn-end",
      { ...base(event, ctx), success: event.success, error: event.error, messages: event.messages }, 25000) })
    api.on("before_compaction", async (event, ctx) => { await run("compact",
      { ...base(event, ctx), message_count: event.messageCount, token_count: event.tokenCount, messages: event.messages }, 25000) })
    api.on("session_start", async (event, ctx) => { await run("session-start", { ...base(event, ctx), resumed_from: event.resumedFrom }, 10000) })
    api.on("session_end", async (event, ctx) => { await run("session-end",
      { ...base(event, ctx), reason: event.reason, message_count: event.messageCount, next_session_id: event.nextSessionId }, 1500) })
  },
}
