// A fake host of plugins: calls what standard input says, and prints what each call left and returned.
import { pathToFileURL } from "node:url"

let text = ""
for await (const part of process.stdin) text += part
const { host, plugin, folder, messages, steps } = JSON.parse(text)
const made = (await import(pathToFileURL(plugin))).default

const load = {
  async opencode() {
    const client = { session: { messages: async ({ path }) => (path.id ? { data: messages } : {}) } }
    return made.server({ client, directory: folder, worktree: folder })
  },
  async openclaw() {
    const hooks = {}
    made.register({ on: (name, handler) => { hooks[name] = handler } })
    return hooks
  },
}

const hooks = await load[host]()
const done = []
for (const { hook, given } of steps) {
  const returned = await hooks[hook](...given)
  done.push({ hook, given, returned: returned ?? null })
}
console.log(JSON.stringify(done))
