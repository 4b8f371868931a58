// A person's browser at an issuer that lets everyone in: it follows redirects, with cookies. Clients start it as a program in
// place of a browser. Argument: the address of a sign-in, which it follows to its end at the client.
import { pathToFileURL } from 'node:url';

// Follows a sign-in until it leads to `callback`, which is not opened, or to its end if there is none.
export async function signIn(url, callback) {
  const cookies = new Map();
  for (let steps = 0; steps < 20; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/s);
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (!location) {
      if (callback || !response.ok) throw new Error(`the sign-in stops with ${response.status}: ${await response.text()}`);
      return url;
    }
    url = new URL(location, url);
    if (callback && url.href.startsWith(callback)) return url;
  }
  throw new Error('the sign-in does not end');
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await signIn(new URL(process.argv[2]));
