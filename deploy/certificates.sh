#!/usr/bin/env bash
# Certificates for an etcd that lets in only the nodes of a cluster:
#
#   deploy/certificates.sh DIRECTORY HOST...      HOST: each name and address by which nodes and members reach a member of etcd
#
# Makes in DIRECTORY (mode 0700, keys mode 0600), and leaves what is there:
#
#   ca.pem, ca.key         an authority that signs for this etcd and nothing else; keep the key away from the machines
#   etcd.pem, etcd.key     for all members of etcd, towards nodes and each other
#   node.pem, node.key     for the nodes: -shardLogCert and -shardLogKey, with ca.pem as -shardLogCa
#
# They are valid for DAYS days (default 825). To replace those of etcd or the nodes delete them, run this again and restart whoever uses them. Whoever
# has a node's certificate can read and change everything.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,13p' "$0" >&2; exit 1; }
directory=$1
shift
days=${DAYS:-825}
curve=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

umask 077
mkdir -p "$directory"
cd "$directory"

if [ ! -f ca.pem ]; then
  openssl req -x509 "${curve[@]}" -days "$days" -subj "/CN=etcd of Orrery" -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -keyout ca.key -out ca.pem 2>/dev/null
fi

# sign NAME USAGE [NAMES]
sign() {
  [ ! -f "$1.pem" ] || return 0
  printf 'extendedKeyUsage=%s\n%s\n' "$2" "${3:+subjectAltName=$3}" >"$1.ext"
  openssl req -new "${curve[@]}" -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days "$days" -extfile "$1.ext" -out "$1.pem" 2>/dev/null
  rm "$1.csr" "$1.ext"
}

names=
for host in "$@"; do
  case $host in
    *:*) names+=",IP:$host" ;;
    *[!0-9.]*) names+=",DNS:$host" ;;
    *) names+=",IP:$host" ;;
  esac
done
sign etcd serverAuth,clientAuth "${names#,}"
sign node clientAuth
