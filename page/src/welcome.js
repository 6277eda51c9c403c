// What an empty conversation shows: which model answers, and words to begin with.
import { h } from './dom.js';

// The demo model, which is in the binary, has learned these answers; other models have not heard of Chasqui.
const demoName = 'chasqui-demo';
const ofDemo = ['What is Chasqui?', 'What is a prefix cache?', 'Why does a long prompt not freeze other streams?'];
const ofAny = ['What can you help me with?', 'Explain why the sky is blue.', 'Write a short poem about the sea.'];

// `send(text)` asks; the name is '' where the server has not told it.
export function welcome(modelName, send) {
  const start = (text) => h('button', { type: 'button', onclick: () => send(text) }, text);
  return h('div', { class: 'welcome' }, h('h2', {}, 'Ask something'),
    h('p', {}, modelName ? `${modelName} answers, on this server. ` : '', 'Conversations stay in this browser.'),
    h('div', { class: 'row' }, (modelName === demoName ? ofDemo : ofAny).map(start)));
}
