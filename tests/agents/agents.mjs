// Coding agents as npm has them, unmodified: how each is told where the server is, asked something, and how it spells
// the calls of its own tools. `home` is an empty folder of its own, `url` the server's address without a path.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const model = 'chasqui-demo';
const context = 65_536; // of one slot

function put(file, content) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
}

const codexConfig = (url) => `model = "${model}"
model_provider = "chasqui"
model_context_window = ${context}
check_for_update_on_startup = false

[model_providers.chasqui]
name = "Chasqui"
base_url = "${url}/v1"
env_key = "CHASQUI_API_KEY"
wire_api = "responses"

[analytics]
enabled = false
`;

const continueConfig = (url) => `name: local
version: 0.0.1
schema: v1
models:
  - name: chasqui
    provider: openai
    model: ${model}
    apiBase: ${url}/v1
    apiKey: any
    roles: [chat]
    capabilities: [tool_use]
    defaultCompletionOptions: { contextLength: ${context}, maxTokens: 4096 }
`;

const shell = (tool) => ({
  read: (file) => [tool, { cmd: `cat ${file}` }],
  write: (file, text) => [tool, { cmd: `echo '${text}' > ${file}` }],
  run: (cmd) => [tool, { cmd }],
});

// `setup` writes what the agent reads at its start and gives its environment; `args` asks it; `tools` are its calls as
// [name, arguments].
export const agents = {
  codex: {
    package: '@openai/codex@0.169.0', program: 'codex',
    args: (prompt) => ['exec', '--skip-git-repo-check', '-s', 'danger-full-access', prompt],
    setup(home, url) {
      put(`${home}/.codex/config.toml`, codexConfig(url));
      return { CHASQUI_API_KEY: 'any' };
    },
    tools: shell('exec_command'),
  },
  claude: {
    package: '@anthropic-ai/claude-code@2.1.197', program: 'claude',
    args: (prompt) => ['-p', prompt, '--dangerously-skip-permissions'],
    setup: (home, url) => ({
      ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: 'any', ANTHROPIC_MODEL: model, ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1',
      IS_SANDBOX: '1', // else it does not work as root
    }),
    tools: {
      read: (file) => ['Read', { file_path: file }],
      write: (file, content) => ['Write', { file_path: file, content }],
      run: (command) => ['Bash', { command, description: 'one step' }],
    },
  },
  opencode: {
    package: 'opencode-ai@1.18.33', program: 'opencode',
    args: (prompt) => ['run', '-m', `chasqui/${model}`, prompt],
    setup(home, url) {
      put(`${home}/.config/opencode/opencode.json`, { autoupdate: false, share: 'disabled', permission: { '*': 'allow' },
        provider: { chasqui: { npm: '@ai-sdk/openai-compatible', name: 'Chasqui', options: { baseURL: `${url}/v1`, apiKey: 'any' },
          models: { [model]: { name: 'Chasqui', tool_call: true, limit: { context, output: 4096 } } } } } });
      return { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' };
    },
    tools: {
      read: (filePath) => ['read', { filePath }],
      write: (filePath, content) => ['write', { content, filePath }],
      run: (command) => ['bash', { command }],
    },
  },
  qwen: {
    package: '@qwen-code/qwen-code@0.15.10', program: 'qwen',
    args: (prompt) => ['-y', '-p', prompt],
    setup(home, url) {
      put(`${home}/.qwen/settings.json`, { general: { enableAutoUpdate: false }, privacy: { usageStatisticsEnabled: false },
        security: { auth: { selectedType: 'openai' } } });
      return { OPENAI_API_KEY: 'any', OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: model };
    },
    tools: {
      read: (file) => ['read_file', { file_path: file }],
      write: (file, content) => ['write_file', { file_path: file, content }],
      run: (command) => ['run_shell_command', { command, is_background: false }],
    },
  },
  pi: {
    package: '@mariozechner/pi-coding-agent@0.73.1', program: 'pi',
    args: (prompt) => ['--provider', 'chasqui', '--model', model, '-p', prompt],
    setup(home, url) {
      put(`${home}/.pi/agent/models.json`, { providers: { chasqui: { baseUrl: `${url}/v1`, api: 'openai-completions', apiKey: 'any',
        models: [{ id: model, contextWindow: context, maxTokens: 4096 }] } } });
      return { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1' };
    },
    tools: {
      read: (file) => ['read', { path: file }],
      write: (file, content) => ['write', { path: file, content }],
      run: (command) => ['bash', { command }],
    },
  },
  continue: {
    package: '@continuedev/cli@1.5.47', program: 'cn',
    args: (prompt, home) => ['--config', `${home}/.continue/config.yaml`, '--auto', '-p', prompt],
    setup(home, url) {
      put(`${home}/.continue/config.yaml`, continueConfig(url));
      return { CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_CLI_AUTO_UPDATED: 'true' };
    },
    tools: {
      read: (filepath) => ['Read', { filepath }],
      write: (filepath, content) => ['Write', { filepath, content }],
      run: (command) => ['Bash', { command }],
    },
  },
  cline: {
    package: 'cline@3.0.65', program: 'cline',
    // With a folder of its own it starts no daemon that would outlive it.
    args: (prompt, home) => ['--data-dir', `${home}/.cline/data`, '--auto-approve', 'true', prompt],
    setup(home, url) {
      put(`${home}/.cline/data/settings/providers.json`, { version: 1, lastUsedProvider: 'openai-compatible', modes: {},
        providers: { 'openai-compatible': { settings: { provider: 'openai-compatible', apiKey: 'any', model, baseUrl: `${url}/v1` },
          updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual' } } });
      return { CLINE_NO_AUTO_UPDATE: '1' };
    },
    tools: {
      read: (path) => ['read_files', { files: [{ path }] }],
      write: (path, text) => ['editor', { path, new_text: text }],
      run: (command) => ['run_commands', { commands: [command] }],
    },
  },
};
