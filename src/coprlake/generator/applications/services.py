"""Services that a company writes itself: orders, payments, logins, search, builds, devices and customer feedback."""

# ruff: noqa: E501 - a template is one line, however long the log line is

from coprlake.generator.template import Application

_STEP = "<=OrderController|CartController|PriceController|StockController>"

ORDERS = Application(
    "order service",
    "%Y-%m-%d %H:%M:%S,{ms}",
    "<time> ",
    f"""
INFO  [http-nio-8080-exec-<thread>] c.e.orders.web.{_STEP} - [<hex:16>] POST /orders customer=<num:40000> items=<num:3>
INFO  [http-nio-8080-exec-<thread>] c.e.orders.domain.OrderValidator - [<hex:16>] order <id:order> valid, total=<dec2:60> <EUR|USD|CHF>
?DEBUG [http-nio-8080-exec-<thread>] c.e.orders.stock.StockClient - [<hex:16>] reserve SKU-<thread:60000> quantity=<to> warehouse=<LNZ|VIE|GRZ|MUC> answered in <ms:14> ms
?DEBUG [http-nio-8080-exec-<thread>] c.e.orders.price.DiscountRules - [<hex:16>] rule <welcome10|summer|bundle|staff> applied, saved <dec2:4>
INFO  [http-nio-8080-exec-<thread>] c.e.orders.domain.OrderService - [<hex:16>] order <id:order> stored in <ms:9> ms
INFO  [kafka-producer-<=1|2|3>] c.e.orders.events.OrderPublisher - [<hex:16>] OrderCreated order=<id:order> partition=<to> offset=<seq:3>

INFO  [http-nio-8080-exec-<thread>] c.e.orders.web.{_STEP} - [<hex:16>] GET /orders/<num:900000> user=<user>
DEBUG [http-nio-8080-exec-<thread>] c.e.orders.cache.OrderCache - [<hex:16>] <hit|miss> for key order:<num:900000>
INFO  [http-nio-8080-exec-<thread>] c.e.orders.web.RequestLog - [<hex:16>] completed status=<200|304|404> in <ms:12> ms

WARN  [hikari-housekeeper] com.zaxxer.hikari.pool.HikariPool - orders-db - pool stats (total=<num:20>, active=<num:9>, idle=<num:9>, waiting=<to>)

ERROR [http-nio-8080-exec-<thread>] c.e.orders.web.ErrorAdvice - [<hex:16>] request failed after <ms:5000> ms
!com.example.orders.stock.StockUnavailableException: stock service did not answer within 5000 ms
!	at com.example.orders.stock.StockClient.reserve(StockClient.java:<=88|91|140>)
!	at com.example.orders.domain.OrderService.place(OrderService.java:<=57|61|73>)
!	at jdk.internal.reflect.GeneratedMethodAccessor<thread:300>.invoke(Unknown Source)
!	at org.springframework.web.servlet.FrameworkServlet.service(FrameworkServlet.java:<=885|897>)
?!	... <num:40> common frames omitted

INFO  [scheduler-<=1|2>] c.e.orders.jobs.ExpiryJob - expired <num:30> carts older than <=30|60> minutes in <ms:200> ms
INFO  [scheduler-<=1|2>] c.e.orders.jobs.OutboxJob - relayed <num:40> events, lag <ms:90> ms, last id <seq:2>

INFO  [G1-concurrent] gc - GC(<seq>) Pause Young (Normal) <num:700>M-><num:220>M(1024M) <dec:9>ms
""",
)

PAYMENTS = Application(
    "payment service",
    "%Y-%m-%dT%H:%M:%S,{ms}+00:00",
    "ts=<time> svc=payments ",
    """
level=info event=payment.created id=pay_<hex:14> order=<id:order> amount=<dec2:60> currency=<EUR|USD|CHF> method=<=card|paypal|sepa|invoice> customer=<num:40000>
level=info event=risk.scored id=pay_<hex:14> score=<pct> rules=<velocity|geo|device|none> country=<AT|DE|US|FR|IT|BR> ms=<ms:30>
?level=info event=3ds.requested id=pay_<hex:14> acs=<acs1|acs2>.bank.example.net version=2.2.0
level=info event=payment.authorized id=pay_<hex:14> acquirer=<=nordbank|alpina|transpay> auth=<thread:999999> ms=<ms:300>
?level=info event=payment.captured id=pay_<hex:14> batch=<num:900>

level=warn event=payment.declined id=pay_<hex:14> acquirer=<=nordbank|alpina|transpay> code=<05|51|54|61> reason="<do not honour|insufficient funds|expired card|limit exceeded>" retry=<true|false>

level=info event=refund.created id=re_<hex:14> payment=pay_<hex:14> amount=<dec2:30> currency=<EUR|USD|CHF> operator=<user>
level=info event=refund.settled id=re_<hex:14> ms=<ms:900>

level=info event=webhook.sent hook=wh-<id:hook> endpoint=https://hooks.<=partner|shop|ledger>.example.com/v1/pay attempt=<1|2|3> status=<200|202|500> ms=<ms:120> delivery=<id:delivery>

level=error event=acquirer.timeout acquirer=<=nordbank|alpina|transpay> host=<lan> port=8443 ms=<ms:10000> circuit=<closed|half-open|open>

level=info event=settlement.batch batch=<num:900> acquirer=<=nordbank|alpina|transpay> payments=<num:900> total=<dec2:60000> currency=<EUR|USD|CHF> file=<file>
level=info event=settlement.acknowledged batch=<num:900> ref=<id:settle>

level=debug event=token.lookup token=tok_<session> cache=<hit|miss> ms=<ms:2>

level=debug event=fx.rate pair=EUR<USD|CHF|GBP|JPY> rate=<dec:1> source=<ecb|desk>
level=info event=limits.updated merchant=<thread:4000> daily=<dec2:9000> by=<user>

level=info event=health db=ok queue=<num:12> acquirers=<3/3|2/3> uptime=<seq:5>
""",
)

RECOMMENDER = Application(
    "python service",
    "%Y-%m-%d %H:%M:%S,{ms}",
    "<time> - recommender.",
    """
api - INFO - request_id=<hex:12> user=<user> candidates=<num:400> model=<=als-17|two-tower-4|popular> took=<dec:0.05>s
?ranker - DEBUG - request_id=<hex:12> features=<num:60> scored=<num:400> batch=<dec:0.02>s
?api - INFO - request_id=<hex:12> returned <=10|20|50> items, coverage <pct>%

features.store - INFO - fetched <num:60> rows for user=<user> from feature table <=clicks_7d|orders_90d|views_1d> in <ms:14> ms

cache - WARNING - key rec:<user>:<=home|cart|mail> expired <num:300> s ago, recomputing

training - INFO - epoch <num:12> step <seq:10> loss=<dec:0.4> lr=0.000<to> examples/s=<num:9000>
?training - INFO - checkpoint written to s3://models/<=als-17|two-tower-4>/step-<seq:10>.pt (<size:90000000> bytes)

api - ERROR - request_id=<hex:12> unhandled exception
!Traceback (most recent call last):
!  File "/srv/app/recommender/api.py", line <=118|131|207>, in recommend
!    items = ranker.rank(user, candidates, limit=limit)
!  File "/srv/app/recommender/ranker.py", line <=64|71|90>, in rank
!    scores = self.model.score(features)
!  File "/srv/app/recommender/model.py", line <=203|220>, in score
!<=ValueError: operands could not be broadcast together|KeyError: 'price_bucket'|TimeoutError: feature store did not answer|MemoryError>: user <user>

worker - INFO - Task recommender.tasks.<=refresh_user|export_items|prune>[<uuid>] received
worker - INFO - Task recommender.tasks.<=refresh_user|export_items|prune>[<uuid>] succeeded in <dec:2>s: None

worker - WARNING - Task recommender.tasks.<=refresh_user|export_items|prune>[<uuid>] retry: Retry in <thread:90>s: ConnectionError('<lan>:6379')

uvicorn - INFO - <lan>:<port> - "GET /v1/recommend/<user>?limit=<=10|20|50> HTTP/1.1" <200|200|422|500>

experiments - INFO - assigned user=<user> to <=exp-home-rank|exp-mail-time>:<control|treatment>
drift - WARNING - feature <=price|age_days|clicks_7d> mean moved from <dec:1> to <dec:1> (psi=<dec:0.1>)
""",
)

ENVOY = Application(
    "envoy json",
    "%Y-%m-%dT%H:%M:%S,{ms}+00:00",
    '{"start_time":"<time>",',
    """
"method":"GET","path":"<path>","protocol":"HTTP/2","response_code":<200|304|404|503>,"response_flags":"<-|-|UF|UH>","bytes_received":0,"bytes_sent":<size:4000>,"duration":<ms:20>,"upstream_service_time":"<ms:18>","x_forwarded_for":"<ip>","request_id":"<uuid>","authority":"shop.example.com","upstream_host":"<lan>:8080","upstream_cluster":"outbound|8080||<=catalog|cart|search>.shop.svc"}

"method":"POST","path":"/<=cart.Cart|stock.Stock|price.Price>/<=Get|Update|Reserve>","protocol":"HTTP/2","response_code":200,"grpc_status":"<0|0|14|4>","bytes_received":<size:300>,"bytes_sent":<size:200>,"duration":<ms:6>,"request_id":"<session>","authority":"<=cart|stock|price>:50051","upstream_host":"<lan>:50051","upstream_cluster":"outbound|50051||<=cart|stock|price>.shop.svc"}

"method":"GET","path":"/healthz","protocol":"HTTP/1.1","response_code":200,"response_flags":"-","bytes_received":0,"bytes_sent":2,"duration":<to>,"user_agent":"kube-probe/1.29","upstream_host":"127.0.0.1:8080","upstream_cluster":"inbound|8080||"}

"method":"POST","path":"/api/v2/<orders|cart/items|login>","protocol":"HTTP/2","response_code":<201|200|400|500>,"bytes_received":<size:900>,"bytes_sent":<size:400>,"duration":<ms:60>,"x_forwarded_for":"<ip>","request_id":"<hex:16>","tls_version":"TLSv1.3","upstream_host":"<lan>:8080","upstream_cluster":"outbound|8080||orders.shop.svc"}

"log":"upstream reset: reset reason: <connection failure|connection termination|overflow>","level":"warning","connection":<id:conn>,"stream":<num:900>,"cluster":"outbound|8080||<=catalog|cart|search>.shop.svc","host":"<lan>:8080"}

"log":"ejecting host <lan>:8080 from outbound|8080||<=catalog|cart|search>.shop.svc","level":"warning","ejections":<to>,"type":"<5xx|gateway|successrate>"}
"log":"unejecting host <lan>:8080","level":"info","ejected_for_ms":<ms:30000>}

"log":"cds: added <to> cluster(s), removed <to>, total <num:120>","level":"info","version":"<id:version>","took_ms":<ms:12>}
"log":"lds: listener '0.0.0.0_<8080|50051|9090>' updated","level":"info","version":"<id:version>"}

"log":"jwt verification fails: <Jwt is expired|Jwt is missing|Audiences in Jwt are not allowed>","level":"info","path":"<path>","client":"<ip>","issuer":"https://id.example.com"}

"log":"rate limited","level":"info","descriptor":"<ip|api_key|path>","client":"<ip>","limit":<100|600|50>,"remaining":0,"reset_s":<num:20>}

"log":"wasm plugin <=auth|headers|stats> returned status <ok|ok|retry>","level":"debug","vm":"<thread:16>","took_us":<num:90>}
"log":"memory high watermark","level":"warning","heap_bytes":<size:90000000>,"pressure":0.<pct>}

"log":"drain started","level":"info","active_connections":<num:60>,"listener":"0.0.0.0_<8080|50051|9090>"}
"log":"drain complete","level":"info","seconds":<num:30>}

"method":"CONNECT","path":null,"protocol":"HTTP/1.1","response_code":<200|503>,"bytes_sent":<size:90000>,"duration":<ms:9000>,"authority":"<=db|cache|mail>.example.com:443","upstream_host":"<ip>:443","upstream_cluster":"PassthroughCluster"}
""",
)

LOGINS = Application(
    "auth service",
    "%Y-%m-%dT%H:%M:%S.{ms}+00:00",
    "<time> auth-<zone> ",
    """
INFO login attempt user=<user> client=<=web|ios|android|cli> ip=<ip> flow=<session>
?INFO password verified user=<user> argon2_ms=<ms:60> flow=<session>
?INFO second factor <totp|push|webauthn> accepted user=<user> flow=<session>
INFO token issued user=<user> client=<=web|ios|android|cli> jti=<hex:12> ttl=<3600|900|86400> scopes=<openid,profile|openid,orders|admin>

INFO token refreshed user=<user> client=<=web|ios|android|cli> flow=<session> age=<num:900>s

WARN login failed user=<user> reason=<bad_password|unknown_user|locked|expired> ip=<ip> failures=<num:3>
?WARN account locked user=<user> until=+<900|3600>s after <5|10> failures

INFO introspect client=<=orders|payments|catalog|gateway> active=<true|true|false> cache=<hit|miss> took=<ms:2>ms

INFO key rotation kid=<hex:8> algorithm=<RS256|ES256> next=+86400s
INFO jwks served to <lan> etag=<=a91c|77fe|03bd> keys=<2|3>

INFO session ended user=<user> flow=<session> reason=<logout|idle|revoked> length=<num:2400>s

INFO password changed user=<user> ip=<ip> strength=<2|3|4>/4
INFO mail queued template=<reset|welcome|alert> to=<mail> message=<id:mail>

WARN impossible travel user=<user> from=<AT|DE|US|FR|IT> to=<BR|VN|US|AT> minutes=<num:90> risk=<pct>

INFO ldap sync added=<to> updated=<num:9> removed=<to> total=<num:9000> took=<dec:3>s
ERROR ldap connection <lan>:636 failed: <timeout|certificate has expired|connection refused>, retry in <to>s
""",
)

BUILDS = Application(
    "ci runner",
    "%Y-%m-%dT%H:%M:%S,{ms}+00:00",
    "<time> runner-<thread:60> job=<id:build> ",
    """
Running with runner 17.0.0 on <pod:runner>, executor kubernetes, project <=shop/orders|shop/web|core/auth|data/lake>
Fetching changes with git depth set to 50, commit <hex:40> as <=main|release/4.2|feature/cart|fix/login>
Restoring cache key <=maven|npm|pip>-<=main|branch>-<to>: <num:300> MB in <dec:6> s
?Downloading artifact from job <num:900000>: <size:9000000> bytes, sha256 <hex:16>
Executing step script <=build|test|lint|package>
?[<=INFO|INFO|WARNING>] Compiling <num:300> source files with javac release 17 to target/classes
Job succeeded in <dec:200> s, exit code 0

[INFO] Tests run: <num:40>, Failures: 0, Errors: 0, Skipped: <to>, Time elapsed: <dec:3> s - in com.example.<=orders|cart|auth|lake>.<=Price|Stock|Token|Batch|Router>Test
[INFO] Tests run: <num:12>, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: <dec:1> s - in com.example.<=orders|cart|auth|lake>.<=Parser|Codec|Client>Test

#<thread:24> [<build|deps|final> <to>/9] RUN <apt-get update|pip install -r requirements.txt|npm ci --omit=dev|make dist>
#<thread:24> DONE <dec:8>s
?#<thread:24> CACHED

added <num:900> packages, and audited <num:900> packages in <num:20>s, <to> vulnerabilities

[ERROR] Tests run: <num:40>, Failures: <to>, Errors: <to>, Skipped: 0, Time elapsed: <dec:3> s <<< FAILURE! - in com.example.<=orders|cart|auth|lake>.<=Price|Stock|Token|Batch|Router>Test
[ERROR] <=Price|Stock|Token|Batch|Router>Test.<roundsHalfUp|rejectsNegative|survivesRestart|keepsOrder>:<thread:300> expected: <num:30> but was: <num:30>
Job failed: exit code <1|2|137>

pushing layer sha256:<hex:24> to registry.example.com/<=orders|web|auth|lake> <size:30000000> bytes
pushed registry.example.com/<=orders|web|auth|lake>:<id:tag> digest sha256:<hex:24>

coverage <pct>.<to>% lines, <pct>.<to>% branches, report <file>
uploading <num:30> reports to coordinator: <201 Created|201 Created|413 Request Entity Too Large>

waiting for pod <pod:build> to be running, status is Pending, <ContainersNotReady|Unschedulable>
""",
    pace_ms=700,
)

REVIEWS = Application(
    "customer texts",
    "%Y-%m-%d %H:%M:%S",
    "<time> reviews ",
    """
INFO review received id=<id:review> product=<thread:60000> stars=<5|4|1|3|2> lang=<de|ru|ja|zh|fr|el|tr> title="<text>" user=<user>
?INFO moderation id=<id:review> verdict=<ok|ok|spam|abuse> score=0.<pct> ms=<ms:40>
INFO indexed id=<id:review> shard=<to> terms=<num:30>

INFO search query="<text>" hits=<num:40> ms=<ms:20> user=<user>

INFO chat message conversation=<session> from=<user> text="<text>, <text:b>" length=<num:40>
?INFO chat translated conversation=<session> <ja|zh|ru|de>->en ms=<ms:200>
INFO chat reply conversation=<session> agent=<user:b> text="<text:c>" after <num:60>s

WARN review id=<id:review> rejected: <too short|contains link|duplicate of> <num:90000>, text was "<text>"

INFO ticket <id:ticket> opened by <mail> subject="<text>" queue=<=billing|delivery|returns|technical>
?INFO ticket <id:ticket> assigned to <user:b> queue=<=billing|delivery|returns|technical> priority=<low|normal|high>
INFO ticket <id:ticket> answered by <user:b>, first response after <num:40> min

INFO address normalized "<=Hauptstraße|Am Bäckerbach|Rue de l'Église|улица Мира|中山路|Çarşı Caddesi> <thread:180>" -> geo 48.<num:30000>,16.<num:30000>

INFO mail rendered template=<shipped|delayed|survey> lang=<de|fr|ja|tr> to=<mail> subject="<text>"

ERROR cannot decode request body as utf-8 at byte <num:300>, client=<ip>, replaced with "\N{REPLACEMENT CHARACTER}"

INFO sentiment batch=<id:sentiment> texts=<num:200> mean=0.<pct> seconds=<dec:3>
INFO export <file> rows=<num:9000> languages=<num:7> checksum=<hex:8>
""",
)

DEVICES = Application(
    "device gateway",
    "%Y-%m-%d %H:%M:%S.{ms}",
    "<time> gw ",
    """
mqtt CONNECT client=dev-<device> user=fleet keepalive=60 from <ip>:<port>
mqtt SUBSCRIBE client=dev-<device> topic=devices/<device>/commands qos=1
mqtt PUBLISH client=dev-<device> topic=devices/<device>/telemetry bytes=<size:300> qos=<0|1>
?mqtt PUBLISH client=dev-<device> topic=devices/<device>/status bytes=<num:90> qos=1 retain=1
?mqtt DISCONNECT client=dev-<device> reason=<normal|keepalive timeout|session taken over>

telemetry sensor=S<thread:4000> temp=<dec2:21> hum=<pct> batt=<num:3600> rssi=-<num:70>

telemetry sensor=S<thread:4000> power_w=<dec2:300> volt=<dec2:230> freq=<dec2:50> energy_wh=<seq:13>

alarm sensor=S<thread:4000> kind=<over-temperature|door open|leak|low battery> value=<dec2:60> threshold=<dec2:50>
?alarm sensor=S<thread:4000> acknowledged by <user>
alarm sensor=S<thread:4000> cleared after <num:300> s

firmware offer device=dev-<thread:90000> from=4.<to>.<to> to=4.9.2 bytes=<size:900000>
firmware chunk device=dev-<thread:90000> offset=<num:400000> crc=<hex:8>
firmware done device=dev-<thread:90000> seconds=<dec:90> result=<ok|ok|crc mismatch>

rule engine matched rule=<=night-heating|leak-stop|peak-shaving> sensor=S<thread:4000> action=<=switch|notify|log> ms=<ms:3>

bridge forwarded <num:300> messages to kafka topic=telemetry-<=0|1|2> lag=<ms:40>ms dropped=<to>
bridge reconnect to <lan>:9092 attempt=<to> backoff=<ms:800>ms

lora uplink dev_eui=<=70b3d57ed0|a84041c2d1><thread:99999> fcnt=<seq> sf=<7|9|10|12> snr=<dec2:6> gateway=<=gw-north|gw-south|gw-roof>
cert device=dev-<thread:90000> serial=<hex:16> expires_in=<num:200>d
""",
    pace_ms=25,
)

SEARCH = Application(
    "search service",
    "%Y-%m-%dT%H:%M:%S,{ms}",
    "[<time>][",
    """
INFO ][o.e.query.SlowLog        ] [<pod:search>] [products][<=0|1|2|3|4>] took[<ms:900>ms], total_hits[<num:2000>], search_type[QUERY_THEN_FETCH], source[{"size":<=10|20|50>,"query":{"match":{"title":"<=lamp|chair|router|jacket|tent|camera> <=red|blue|small|large|cheap>"}}}], id[<hex:12>]

DEBUG][o.e.query.Trace          ] [<pod:search>] id[<hex:12>] user[<user>] rewritten to <num:6> clauses, <num:40> segments visited, <num:9> skipped, <ms:12> ms

INFO ][o.e.index.Refresh        ] [<pod:search>] [<=products|orders|reviews>][<=0|1|2|3|4>] refreshed in <ms:30> ms, <num:300> new documents, searcher generation <seq>
?DEBUG][o.e.index.Merge          ] [<pod:search>] [<=products|orders|reviews>][<=0|1|2|3|4>] merge segment [_<hex:4>] done: took [<dec:4>s], [<dec2:90> MB], [<num:90000> docs]

INFO ][o.e.index.Flush          ] [<pod:search>] [<=products|orders|reviews>][<=0|1|2|3|4>] translog generation <seq> trimmed, <size:9000000> bytes

WARN ][o.e.monitor.Gc           ] [<pod:search>] [gc][young][<seq>] duration [<ms:800>ms], collections [1], total [<dec2:40>m], memory [<dec2:6>gb]->[<dec2:3>gb]/[8gb]

INFO ][o.e.bulk.Ingest          ] [<pod:search>] bulk <id:bulk> of <num:500> documents from <lan> indexed in <ms:90> ms, <to> rejected
?WARN ][o.e.bulk.Ingest          ] [<pod:search>] bulk <id:bulk> document <num:900000> rejected: mapper [price] cannot be changed from type [float] to [text]

WARN ][o.e.cluster.Coordinator  ] [<pod:search>] node-left[{<=search-a|search-b|search-c>} reason: <disconnected|followers check retry count exceeded|lagging>], term: <num:40>, version: <seq>
INFO ][o.e.cluster.Allocation   ] [<pod:search>] Cluster health status changed from [<=GREEN|YELLOW>] to [<=YELLOW|RED>] (reason: [shards failed [[<=products|orders|reviews>][<=0|1|2|3|4>]]])
INFO ][o.e.cluster.Allocation   ] [<pod:search>] Cluster health status changed from [<=YELLOW|RED>] to [GREEN] (reason: [shards started])

INFO ][o.e.suggest.Completion   ] [<pod:search>] prefix "<la|cha|rou|ja|ten|cam|spe|mi>" user[<user>] -> <num:8> suggestions in <ms:3> ms

ERROR][o.e.query.Executor       ] [<pod:search>] id[<session>] all shards failed
!org.example.search.QueryPhaseException: result window is too large, from + size must be at most 10000 but was <num:12000>
!	at org.example.search.DefaultContext.preProcess(DefaultContext.java:<=214|220>)
!	at org.example.search.QueryPhase.execute(QueryPhase.java:<=88|97>)

INFO ][o.e.snapshots.Service    ] [<pod:search>] snapshot [nightly:<id:snapshot>] <started|completed with state SUCCESS> shards=<num:40>
INFO ][o.e.synonyms.Loader      ] [<pod:search>] loaded <num:900> synonyms for <de|en|fr> from <file>
""",
)

APPLICATIONS = (ORDERS, PAYMENTS, RECOMMENDER, ENVOY, LOGINS, BUILDS, REVIEWS, DEVICES, SEARCH)
