// Addresses of clients as uWebSockets.js gives them: 4 or 16 bytes.

/** Whether 4 or 16 bytes are an IPv4 address, perhaps in the clothes of IPv6. */
export function isIPv4(address: Uint8Array): boolean {
  return address.length === 4 || address.every((byte, i) => i >= 12 || byte === (i < 10 ? 0 : 255))
}

/** The address as text, an IPv4 one always in dotted form. */
export function addressText(address: Uint8Array): string {
  if (isIPv4(address)) return address.subarray(-4).join('.')
  const groups: string[] = []
  for (let i = 0; i < address.length; i += 2) groups.push(((address[i]! << 8) | address[i + 1]!).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
