"""Servers at the edge: web access and error logs, proxies, load balancers, DNS and firewalls."""

# ruff: noqa: E501 - a template is one line, however long the log line is

from coprlake.generator.template import Application

_BROWSER = '"<=Mozilla/5.0 (X11; Linux x86_64) Firefox/126.0|Mozilla/5.0 (iPhone; CPU iPhone OS 17_5) Safari/604.1|Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/125.0|healthprobe/2.1|curl/8.5.0|searchbot/3.0 (+https://bot.example.org)>" req-<id:access>'

WEB_ACCESS = Application(
    "web access",
    "%d/%b/%Y:%H:%M:%S +0000",
    "<ip> - <=-|user.name|api-client> [<time>] ",
    f"""
"GET <path> HTTP/1.1" <200|304|200|404> <size:5200> "-" {_BROWSER}
?"GET /static/css/main.css HTTP/1.1" <200|304> <18231|0> "https://shop.example.com<path>" {_BROWSER}
?"GET /static/js/app.<8c1f|a77e|0d42>.js HTTP/1.1" <200|304> <240113|0> "https://shop.example.com<path>" {_BROWSER}
?"GET /static/img/<logo|banner|sprite|icons>.png HTTP/2.0" <200|304> <size:9000> "https://shop.example.com<path>" {_BROWSER}

"GET /api/v2/products?page=<num:4>&limit=<20|50|100> HTTP/1.1" 200 <size:14000> "https://shop.example.com<path>" {_BROWSER}
?"GET /api/v2/products/<id:product>/reviews HTTP/1.1" <200|204|500> <size:2100> "https://shop.example.com<path>" {_BROWSER}

"POST /api/v2/cart/items HTTP/1.1" <201|409|400> <size:310> "https://shop.example.com<path>" {_BROWSER}
"GET /api/v2/cart HTTP/1.1" 200 <size:900> "https://shop.example.com/cart" {_BROWSER}
?"POST /api/v2/checkout HTTP/1.1" <302|200|402|503> <size:150> "https://shop.example.com/cart" {_BROWSER}

"GET /healthz HTTP/1.1" 200 2 "-" "kube-probe/1.29"

"GET /search?q=<lamp|chair|router|jacket|tent|camera>&sort=<price|rating|newest> HTTP/2.0" 200 <size:22000> "-" {_BROWSER}

"POST /login HTTP/1.1" <302|200|401> <size:210> "https://shop.example.com/login" {_BROWSER}
"GET /account HTTP/1.1" <200|403> <size:7000> "https://shop.example.com/login" {_BROWSER}

"GET /<.env|wp-login.php|phpmyadmin/index.php|.git/config|cgi-bin/test> HTTP/1.1" 404 <153|196> "-" "<zgrab/0.x|python-requests/2.31|Go-http-client/1.1>"

"OPTIONS /api/v2/orders HTTP/1.1" 204 0 "https://app.example.com/" {_BROWSER}
"PUT /api/v2/orders/<id:order> HTTP/1.1" <200|404|412> <size:640> "https://app.example.com/" {_BROWSER}

"GET /robots.txt HTTP/1.1" 200 114 "-" "searchbot/3.0 (+https://bot.example.org)"

"HEAD <path> HTTP/1.0" 200 0 "-" "uptime-check/1.4"
""",
)

NGINX_ERROR = Application(
    "nginx error",
    "%Y/%m/%d %H:%M:%S",
    "<time> [",
    """
error] <pid>#<pid>: *<id:nginx> connect() failed (111: Connection refused) while connecting to upstream, client: <ip>, server: shop.example.com, request: "GET <path> HTTP/1.1", upstream: "http://<lan>:8080<path>", host: "shop.example.com"
?warn] <pid>#<pid>: *<id:nginx> upstream server temporarily disabled while connecting to upstream, client: <ip>, server: shop.example.com

error] <pid>#<pid>: *<id:nginx> open() "/usr/share/nginx/html<path>" failed (2: No such file or directory), client: <ip>, server: www.example.com, request: "GET <path> HTTP/1.1", host: "www.example.com"

warn] <pid>#<pid>: *<id:nginx> an upstream response is buffered to a temporary file /var/cache/nginx/proxy_temp/<to>/<pct>/<id:temp> while reading upstream, client: <ip>, server: media.example.com, request: "GET <path> HTTP/2.0"

error] <pid>#<pid>: *<id:nginx> upstream timed out (110: Connection timed out) while reading response header from upstream, client: <ip>, server: api.example.com, request: "POST /api/v2/<orders|cart|search> HTTP/1.1", upstream: "http://<lan>:8443/"

info] <pid>#<pid>: *<id:nginx> client <ip> closed keepalive connection

error] <pid>#<pid>: *<id:nginx> limiting requests, excess: <dec:12> by zone "<perip|login|api>", client: <ip>, server: api.example.com, request: "GET <path> HTTP/1.1"
?error] <pid>#<pid>: *<id:nginx> access forbidden by rule, client: <ip>, server: api.example.com, request: "GET <path> HTTP/1.1"

crit] <pid>#<pid>: *<id:nginx> SSL_do_handshake() failed (SSL: error:<0A00006C|0A000102|0A0000C1>:SSL routines::bad key share) while SSL handshaking, client: <ip>, server: 0.0.0.0:443

notice] <pid>#<pid>: signal <1|15|17> (SIG<HUP|TERM|CHLD>) received from <task>, reconfiguring
notice] <pid>#<pid>: using the "epoll" event method
notice] <pid>#<pid>: start worker processes
notice] <pid>#<pid>: start worker process <task>
notice] <pid>#<pid>: gracefully shutting down

alert] <pid>#<pid>: worker process <task> exited on signal <9|11>
emerg] <pid>#<pid>: cannot load certificate "/etc/ssl/live/<shop|api|media>.example.com/fullchain.pem": no such file
""",
    pace_ms=40,
)

HAPROXY = Application(
    "haproxy",
    "%b %e %H:%M:%S",
    "<time> <node:lb> haproxy[<pid>]: ",
    """
<ip>:<port> [<time>] fe_https~ be_<shop|api|media>/<=app01|app02|app03|app04> <to>/0/<to>/<ms:35>/<ms:40> <200|304|404|502> <size:4100> - - ---- <num:120>/<num:110>/<num:14>/<to>/0 0/0 "GET <path> HTTP/1.1"

<ip>:<port> [<time>] fe_https~ be_api/<=app01|app02|app03|app04> 0/0/<to>/<ms:80>/<ms:82> <200|201|400> <size:700> - - ---- <num:120>/<num:110>/<num:14>/<to>/0 0/0 "POST /api/v2/<orders|cart/items|login|search> HTTP/1.1"

<ip>:<port> [<time>] fe_http fe_http/NOSRV 0/-1/-1/-1/0 301 <104|118> - - LR-- <num:60>/<num:12>/0/0/0 0/0 "GET / HTTP/1.1"

Connect from <ip>:<port> to <self>:443 (fe_https/HTTP)

Server be_<=shop|api|media>/<=app01|app02|app03|app04> is DOWN, reason: Layer<4|7> <timeout|connection problem|wrong status, code: 503>, check duration: <ms:1900>ms. <to> active and 0 backup servers left. <num:30> sessions active, 0 requeued, 0 remaining in queue.
?backend be_<=shop|api|media> has no server available!
Server be_<=shop|api|media>/<=app01|app02|app03|app04> is UP, reason: Layer7 check passed, code: 200, check duration: <ms:9>ms. <to> active and 0 backup servers online. 0 sessions requeued, 0 total in queue.

<ip>:<port> [<time>] fe_tcp be_redis/<=cache01|cache02> 1/<to>/<ms:60000> <size:90000> -- <num:120>/<num:30>/<num:28>/<num:8>/0 0/0

<ip>:<port> [<time>] fe_https/1: SSL handshake failure

Proxy fe_<=https|http|tcp> stopped (cumulated conns: FE: <size:900000>, BE: 0).
Proxy fe_<=https|http|tcp> started.
New worker (<task>) forked
Loading success.

Health check for server be_<shop|api|media>/<app01|app02|app03> succeeded, reason: Layer7 check passed, code: 200, check duration: <ms:7>ms, status: <3/3|2/3> UP.

<ip>:<port> [<time>] fe_https~ be_api/NOSRV 0/<ms:5000>/-1/-1/<ms:5000> 503 217 - - sQ-- <num:500>/<num:480>/<num:40>/0/0 0/<num:20> "GET <path> HTTP/1.1"
""",
)

LOAD_BALANCER = Application(
    "load balancer",
    "%Y-%m-%dT%H:%M:%S,{ms}+00:00",
    "",
    """
https <time> app/shop-prod/50dc6c495c0c9188 <ip>:<port> <lan>:8080 0.00<to> <dec:0.04> 0.000 <200|304|404> <200|304> <size:700> <size:5000> "GET https://shop.example.com:443<path> HTTP/2.0" TLS_AES_128_GCM_SHA256 TLSv1.3 "Root=1-66<hex:6>-<hex:16>"

https <time> app/api-prod/9f1ad1f1cf0e3d02 <ip>:<port> <lan>:8443 0.00<to> <dec:0.09> 0.000 <200|201|400|503> <200|201> <size:1200> <size:900> "POST https://api.example.com:443/api/v2/<orders|cart|search> HTTP/2.0" TLS_AES_128_GCM_SHA256 TLSv1.3 "-"

h2 <time> app/api-prod/9f1ad1f1cf0e3d02 <ip>:<port> <lan>:8443 0.00<to> <dec:0.02> 0.000 200 200 <size:300> <size:120> "GET https://api.example.com:443/healthz HTTP/2.0" - - "-"

http <time> app/legacy/1b7dd20e47c8b7a3 <ip>:<port> - -1 -1 -1 301 - <size:230> <size:330> "GET http://www.example.com:80/ HTTP/1.1" - - "-" waf,redirect

health <time> target-group/shop-prod target <lan>:8080 <healthy|healthy|unhealthy> checks=<3|2|5> latency=<dec:0.01> reason=<-|Target.Timeout|Target.ResponseCodeMismatch>

drain <time> target-group/shop-prod target <lan>:8080 deregistration started, <num:40> connections in flight
drain <time> target-group/shop-prod target <lan>:8080 deregistration complete after <ms:28000> ms

scale <time> capacity units <num:12> -> <num:12> active_connections=<num:4000> new_connections=<num:800> processed_bytes=<size:90000000>

tls <time> listener/443 handshake failed client <ip>:<port> reason=<UnsupportedProtocol|NoCipherMatch|ClientClosed>

wss <time> app/push/77bc01ddeab01f13 <ip>:<port> <lan>:9000 0.00<to> <dec:900> 0.000 101 101 <size:4000> <size:70000> "GET wss://push.example.com:443/stream/<session> HTTP/1.1" - - "-"

waf <time> rule=<rate-limit|sqli|bad-bot|geo> action=<BLOCK|COUNT|CAPTCHA> client=<ip> country=<DE|AT|US|BR|IN|VN> uri=<path> terminating=<true|false>

grpc <time> app/internal/<c3|d9|e0>ff <lan>:<port> <lan:b>:50051 0.000 <dec:0.01> 0.000 200 200 <size:200> <size:200> "POST http://internal:80/inventory.Stock/<Reserve|Release|Query> HTTP/2.0" grpc-status=<0|0|14>

config <time> listener/443 rule priority=<num:20> updated by user/<user> change=<id:change>

zone <time> zonal shift for <eu-west-1a|eu-west-1b|eu-west-1c> <started|ended> weight=<pct>

cert <time> certificate arn:cert/<=shop|api|push> expires in <num:40> days, renewal <scheduled|pending validation>
""",
    pace_ms=3,
)

DNS = Application(
    "dns",
    "%d-%b-%Y %H:%M:%S.{ms}",
    "<time> ",
    """
queries: info: client @<ptr> <lan>#<port> (<=shop|api|www|mail|db-01|cache-02|push|auth>.example.com): query: <=shop|api|www|mail|db-01|cache-02|push|auth>.example.com IN <A|AAAA|HTTPS|MX> +E(0)K (<self>)

queries: info: client @<ptr> <lan>#<port> (<num:20>.<num:9>.4.10.in-addr.arpa): query: host IN PTR + (<self>)

resolver: info: lame server resolving '<shop|cdn|img|track>.partner.example.net' (in 'partner.example.net'?): <ip>#53

query-errors: info: client @<ptr> <lan>#<port> (<=kafka-0|kafka-1|redis-2|pg-primary>.svc.cluster.local): query failed (SERVFAIL) for <=kafka-0|kafka-1|redis-2|pg-primary>.svc.cluster.local/IN/A at query.c:<7210|5816>
?resolver: debug 1: fetch: <=kafka-0|kafka-1|redis-2|pg-primary>.svc.cluster.local/A

update: info: client @<ptr> <lan>#<port>/key dhcp: updating zone 'corp.example.com/IN': adding an RR at 'laptop-<id:laptop>.corp.example.com' A <lan>
?update: info: client @<ptr> <lan>#<port>/key dhcp: updating zone 'corp.example.com/IN': deleting rrset at 'laptop-<id:laptop>.corp.example.com' TXT

notify: info: zone corp.example.com/IN: sending notifies (serial <id:serial>)
xfer-out: info: client @<ptr> <lan>#<port> (corp.example.com): transfer of 'corp.example.com/IN': IXFR started (serial <id:serial>)
xfer-out: info: client @<ptr> <lan>#<port> (corp.example.com): transfer of 'corp.example.com/IN': IXFR ended: <num:4> messages, <num:60> records, <size:4000> bytes, <dec:0.02> secs

security: info: client @<ptr> <ip>#<port>: query (cache) 'version.bind/TXT/CH' denied

rate-limit: info: limit responses to <ip>/24 for <any|isc>.example.org IN ANY (<hex:8>)

dnssec: info: validating <partner|bank|cdn>.example.net/A: <no valid signature found|got insecure response; parent indicates it should be secure>

general: info: zone corp.example.com/IN: loaded serial <id:serial>
general: info: all zones loaded
general: notice: running

client: warning: client @<ptr> <lan>#<port>: recursive-clients soft limit exceeded (<num:900>/900/1000), aborting oldest query
""",
    pace_ms=2,
)

FIREWALL = Application(
    "firewall",
    "%b %e %H:%M:%S",
    "<time> <node:fw> kernel: ",
    """
[UFW BLOCK] IN=eth0 OUT= MAC=02:42:ac:11:00:02:02:42:9d:<10|2f|7c>:08:00 SRC=<ip> DST=<self> LEN=<40|44|60> TOS=0x00 PREC=0x00 TTL=<num:50> ID=<num:20000> PROTO=TCP SPT=<port> DPT=<22|23|3389|445|8080|5900> WINDOW=<1024|65535|29200> RES=0x00 SYN URGP=0 FLOW-<id:flow>

iptables-accept: IN=eth0 OUT=eth1 SRC=<ip> DST=<lan> LEN=60 TOS=0x00 TTL=<num:55> ID=<num:20000> DF PROTO=TCP SPT=<port> DPT=<443|80> WINDOW=64240 SYN FLOW-<id:flow>
?iptables-accept: IN=eth1 OUT=eth0 SRC=<lan> DST=<ip> LEN=60 TOS=0x00 TTL=63 ID=0 DF PROTO=TCP SPT=443 DPT=<port> WINDOW=65160 ACK SYN

[UFW AUDIT] IN= OUT=eth0 SRC=<self> DST=<lan> LEN=<num:90> TOS=0x00 PREC=0x00 TTL=64 ID=<num:20000> DF PROTO=UDP SPT=<port> DPT=53 LEN=<num:60>

iptables-drop: IN=eth0 OUT= SRC=<ip> DST=<self> LEN=<num:120> TOS=0x00 TTL=<num:50> ID=<num:20000> PROTO=UDP SPT=<port> DPT=<1900|123|5060|161> LEN=<num:100>

[UFW BLOCK] IN=eth0 OUT= SRC=<ip> DST=<self> LEN=<84|28> TTL=<num:50> ID=<num:20000> PROTO=ICMP TYPE=8 CODE=0 ID=<num:9000> SEQ=<num:3>

nf_conntrack: table <full, dropping packet|usage 91%|usage 84%>
net_ratelimit: <num:90> callbacks suppressed

iptables-nat: IN= OUT=ppp0 SRC=<lan> DST=<ip> PROTO=TCP SPT=<port> DPT=443 masquerade to <self>:<port:b>

portscan: <ip> probed <num:40> ports in <num:9> s, banned for 600 s
portscan: unban <ip>

geoip-drop: SRC=<ip> CC=<KP|XX|RU|CN> DPT=<22|443>

vpn: peer <user> (<ip>:<port>) handshake complete, assigned <lan>
vpn: peer <user> keepalive <num:25> s, rx <size:900000> tx <size:300000>
?vpn: peer <user> rekey after <num:3500> s
vpn: peer <user> disconnected, session <session>

policy reload: <num:240> rules, <num:30> sets, generation <id:policy>
""",
    pace_ms=15,
)

APPLICATIONS = (WEB_ACCESS, NGINX_ERROR, HAPROXY, LOAD_BALANCER, DNS, FIREWALL)
