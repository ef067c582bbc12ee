#!/usr/bin/env bash
# Certificates for a cluster: for an etcd that lets in only the nodes, and for nodes that let in only each other.
#
#   deploy/certificates.sh DIRECTORY HOST...      HOST: each name and address by which nodes and members reach a member of etcd
#
# Makes in DIRECTORY (mode 0700, keys mode 0600), and leaves what is there:
#
#   ca.pem, ca.key                    an authority that signs for this etcd and nothing else; keep the key away from the machines
#   etcd.pem, etcd.key                for all members of etcd, towards nodes and each other
#   node.pem, node.key                for the nodes towards etcd: -shardLogCert and -shardLogKey, with ca.pem as -shardLogCa
#   cluster-ca.pem, cluster-ca.key    an authority that signs for the nodes and nothing else; keep this key away as well
#   cluster.pem, cluster.key          for all nodes towards each other: -clusterCert and -clusterKey, with cluster-ca.pem as -clusterCa
#
# They are valid for DAYS days (default 825). To replace some delete them, run this again and restart the processes that use them. A client that has
# the certificate of a node can read and change everything.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,15p' "$0" >&2; exit 1; }
directory=$1
shift
days=${DAYS:-825}
curve=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

umask 077
mkdir -p "$directory"
cd "$directory"

# authority NAME SUBJECT
authority() {
  [ ! -f "$1.pem" ] || return 0
  openssl req -x509 "${curve[@]}" -days "$days" -subj "/CN=$2" -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -keyout "$1.key" -out "$1.pem" 2>/dev/null
}

# sign AUTHORITY NAME USAGE [NAMES]
sign() {
  [ ! -f "$2.pem" ] || return 0
  printf 'extendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}" >"$2.ext"
  openssl req -new "${curve[@]}" -subj "/CN=$2" -keyout "$2.key" -out "$2.csr" 2>/dev/null
  openssl x509 -req -in "$2.csr" -CA "$1.pem" -CAkey "$1.key" -CAcreateserial -days "$days" -extfile "$2.ext" -out "$2.pem" 2>/dev/null
  rm "$2.csr" "$2.ext"
}

names=
for host in "$@"; do
  case $host in
    *:*) names+=",IP:$host" ;;
    *[!0-9.]*) names+=",DNS:$host" ;;
    *) names+=",IP:$host" ;;
  esac
done
authority ca "etcd of Orrery"
sign ca etcd serverAuth,clientAuth "${names#,}"
sign ca node clientAuth
authority cluster-ca "nodes of Orrery"
sign cluster-ca cluster serverAuth,clientAuth
