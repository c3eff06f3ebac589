# Sourced by `up`: every key, certificate and kubeconfig, into $pki. Wants $api and $ip, the server's addresses.

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$pki/$1.key"; }

cert() { # NAME SUBJECT [OTHER-NAMES]
    local extensions=$'keyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n'${3:+subjectAltName=$3}
    key "$1"
    openssl req -new -key "$pki/$1.key" -subj "$2" |
        openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 30 -out "$pki/$1.crt" \
            -extfile <(echo "$extensions") 2>/dev/null
}

kubeconfig() { # NAME FILE
    cat >"$2" <<-YAML
		apiVersion: v1
		kind: Config
		clusters: [{name: $name, cluster: {server: "https://$ip:6443", certificate-authority-data: $(base64 -w0 "$pki/ca.crt")}}]
		users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$pki/$1.crt"), client-key-data: $(base64 -w0 "$pki/$1.key")}}]
		contexts: [{name: $name, context: {cluster: $name, user: $1}}]
		current-context: $name
	YAML
}

certificates() (
    umask 077
    dns=DNS:localhost,DNS:kubernetes
    for suffix in default default.svc default.svc.cluster.local; do dns+=,DNS:kubernetes.$suffix; done
    key ca
    openssl req -x509 -new -key "$pki/ca.key" -subj /CN=$name-ca -days 30 -out "$pki/ca.crt"
    cert apiserver /CN=kube-apiserver "$dns,IP:127.0.0.1,IP:$api,IP:$ip"
    cert kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
    cert front-proxy /CN=front-proxy
    cert node "/O=system:nodes/CN=system:node:$name" "DNS:$name,IP:$ip"
    cert manager /CN=system:kube-controller-manager
    cert scheduler /CN=system:kube-scheduler
    cert proxy /CN=system:kube-proxy
    cert dns /CN=system:coredns
    cert admin /O=system:masters/CN=admin
    openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
    openssl rsa -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null
    for user in node manager scheduler proxy dns; do kubeconfig $user "$pki/$user.kubeconfig"; done
    kubeconfig admin "$KUBECONFIG"
)
