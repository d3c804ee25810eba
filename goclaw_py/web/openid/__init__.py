"""Sign-in by an OpenID provider (SPEC SEC-10).

``client`` and ``claims`` are light; ``provider`` imports authlib, and is imported at the first
sign-in only.

The rules of SPEC SEC-10:

Sign-in by others, besides the token, which both ways need for programs and emergencies. A role by
group: the highest of `admin_groups`, `operator_groups`, `viewer_groups` and `default_role`;
without one a person is refused. Viewers see no text of messages unless `viewers_read_text`.

- **Trusted proxy** (`[web.proxy]`): the headers `user_header` and `groups_header` count only if
  the peer of the TCP connection is in `addresses`; from others they are ignored and logged
  (`proxy_headers_ignored`, once for an address). There is one header for each, so that a proxy
  which replaces one lets no other through. Repeated ones, and names that cannot be shown, get 400;
  a person without a role 403. The person is that of the request: no row, no cookie; it goes before
  `Authorization`, which a proxy may pass on, and before the cookie. Requests that change something
  have to show their origin as with a cookie (SEC-1). From a trusted proxy the client's address,
  for logs, limits and sign-ins, is the right-most hop of `X-Forwarded-For` that is no trusted
  proxy; from others it is that of the connection. Personal links work without a person. Event
  streams end after 5 min, so that their browser asks the proxy again.
- **OpenID Connect** (`[web.openid]`): authorization code with PKCE (S256), state and nonce, which
  follow from 256 random bits in a cookie of this browser (10 min, `HttpOnly`, `SameSite=Lax`, with
  TLS `__Host-`). The redirect address is `web.public_url` and a fixed path. An ID token counts if
  it is signed by a key of the provider with RSA, ECDSA or EdDSA (never `none`, never with a shared
  secret), and issuer, audience, times (60 s tolerance), nonce and, if given, `azp` and `at_hash`
  are right. Groups (`groups_claim`: a text or a list of texts), name and, with `emails`, the
  verified address may also come from the user info of the same subject. The issuer and all
  addresses that it names are https, or of this machine. A sign-in is a row (SEC-6) with name, role
  and method `openid`, lasts a day, and is always a new one. Signing out ends it here, and links to
  the provider's page if it has one.
- **Limits**: an answer of the provider has 256 KiB, is not packed or redirected, and takes 10 s;
  description and keys are used for 1 h, keys are fetched again for an unknown one at most once a
  minute, the description after a failure at most once in 10 s. A provider that fails concerns
  nobody else: the gateway starts without asking it, and the sign-in page says so beside the form
  for the token. Failed sign-ins are counted by address as wrong tokens are, but apart from them,
  and logged (`sign_in_refused`, `openid_token_refused`, `openid_provider_failed`).
"""
