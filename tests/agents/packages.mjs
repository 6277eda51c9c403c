// Prints what `make agents` installs.
import { agents } from './agents.mjs';

console.log(Object.values(agents).map((agent) => agent.package).join(' '));
