// The plugin of `aldis install opencode` as a package, with the MCP server named besides.
import { AldisPlugin as hooks } from "./plugin.js";

const SERVER = { type: "local", command: ["aldis", "mcp"], enabled: true };

export const AldisPlugin = async (input) => ({
  ...(await hooks(input)),
  // What the user has written stays.
  config: async (config) => {
    config.mcp = { aldis: SERVER, ...config.mcp };
  },
});
