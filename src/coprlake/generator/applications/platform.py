"""Data systems and middleware: databases, queues, file systems, caches and cluster software."""

# ruff: noqa: E501 - a template is one line, however long the log line is

from coprlake.generator.template import Application

KAFKA = Application(
    "kafka",
    "%Y-%m-%d %H:%M:%S,{ms}",
    "[<time>] ",
    """
INFO [GroupCoordinator <=1|2|3>]: Preparing to rebalance group <=order-workers|mail-sender|search-indexer|audit> in state PreparingRebalance with old generation <num:300> (__consumer_offsets-<=12|31|7|44>) (reason: <adding new member|removing member|leader rejoined>) (kafka.coordinator.group.GroupCoordinator)
?INFO [GroupCoordinator <=1|2|3>]: Dynamic member with unknown member id joins group <=order-workers|mail-sender|search-indexer|audit>, created new member id consumer-<uuid> (kafka.coordinator.group.GroupCoordinator)
INFO [GroupCoordinator <=1|2|3>]: Stabilized group <=order-workers|mail-sender|search-indexer|audit> generation <num:300> (__consumer_offsets-<=12|31|7|44>) with <num:6> members (kafka.coordinator.group.GroupCoordinator)

INFO [Log partition=<=orders|payments|clicks|audit|stock>-<=0|1|2|3|4|5>, dir=/var/lib/kafka] Rolled new log segment at offset <seq:911> in <ms:4> ms. (kafka.log.Log)
?INFO [ProducerStateManager partition=<=orders|payments|clicks|audit|stock>-<=0|1|2|3|4|5>] Wrote producer snapshot at offset <seq:911> with <num:8> producer ids in <ms:2> ms. (kafka.log.ProducerStateManager)

INFO [Log partition=<=orders|payments|clicks|audit|stock>-<=0|1|2|3|4|5>, dir=/var/lib/kafka] Incrementing log start offset to <seq:887> due to <segment deletion|retention> (kafka.log.Log)
?INFO Deleted log /var/lib/kafka/<=orders|payments|clicks|audit|stock>-<=0|1|2|3|4|5>/0000000<seq:887>.log.deleted. (kafka.log.LogSegment)

INFO [ReplicaFetcher replicaId=<=1|2|3>, leaderId=<=2|3|1>, fetcherId=0] Partition <=orders|payments|clicks>-<to> has an older epoch (<num:40>) than the current leader. Will await the new LeaderAndIsr state (kafka.server.ReplicaFetcherThread)
WARN [ReplicaFetcher replicaId=<=1|2|3>, leaderId=<=2|3|1>, fetcherId=0] Error in response for fetch request (type=FetchRequest, replicaId=<=1|2|3>, maxWait=500, minBytes=1, sessionId=<id:fetch>, epoch=<num:900>) (kafka.server.ReplicaFetcherThread)
!java.io.IOException: Connection to <=2|3|1> was disconnected before the response was read
!	at kafka.server.ReplicaFetcherBlockingSend.sendRequest(ReplicaFetcherBlockingSend.scala:<=110|97>)
!	at kafka.server.AbstractFetcherThread.doWork(AbstractFetcherThread.scala:<=118|131>)

INFO [Partition <=orders|payments|clicks|audit>-<=0|1|2|3> broker=<=1|2|3>] <Shrinking|Expanding> ISR from 1,2,3 to <1,2|2,3|1,3>. Leader: (highWatermark: <seq:911>, endOffset: <seq:911>). (kafka.cluster.Partition)

INFO [TransactionCoordinator id=<=1|2|3>] Initialized transactionalId <=order|pay>-tx-<thread> with producerId <id:producer> and producer epoch <num:5> on partition __transaction_state-<=3|18|40> (kafka.coordinator.transaction.TransactionCoordinator)

INFO [Controller id=1] Processing automatic preferred replica leader election (kafka.controller.KafkaController)
DEBUG [Controller id=1] Topics not in preferred replica for broker <1|2|3> Map() (kafka.controller.KafkaController)

WARN [SocketServer listenerType=ZK_BROKER, nodeId=<=1|2|3>] Unexpected error from /<lan> (channelId=<self>:9092-<lan>:<port>-<num:400>); closing connection (org.apache.kafka.common.network.Selector)

INFO [LogCleaner] Cleaner 0: cleaned log __consumer_offsets-<=12|31|7|44> in <dec:2> s, <size:2000000> bytes read, <pct>% size reduction (kafka.log.LogCleaner)
""",
)

HDFS = Application(
    "hdfs",
    "%y%m%d %H%M%S",
    "<time> <thread:400> INFO dfs.",
    """
DataNode$DataXceiver: Receiving block blk_<id:blk>00<num:300000> src: /<lan>:<port> dest: /<self>:50010
DataNode$PacketResponder: Received block blk_<id:blk> of size <67108864|33554432|4194304> from /<lan>
DataNode$PacketResponder: PacketResponder <=0|1|2> for block blk_<id:blk> terminating
?FSNamesystem: BLOCK* NameSystem.addStoredBlock: blockMap updated: <lan>:50010 is added to blk_<id:blk> size 67108864

DataNode$DataXceiver: <lan>:50010 Served block blk_<hex:12> to /<lan:b>
?DataNode$DataXceiver: <lan>:50010:Got exception while serving blk_<hex:12> to /<lan:b>:

DataBlockScanner: Verification succeeded for blk_<hex:12>

FSNamesystem: BLOCK* NameSystem.delete: blk_<id:blk> is added to invalidSet of <lan>:50010
FSDataset: Deleting block blk_<id:blk> file /data/current/subdir<=11|32|50|3>/blk_<id:blk>
?FSDataset: Unexpected error trying to delete block blk_<id:blk>. BlockInfo not found in volumeMap.

FSNamesystem: BLOCK* NameSystem.allocateBlock: /user/<user>/out/_temporary/attempt_<num:200>_r_<id:attempt>_0/part-<num:300>. blk_<id:blk>

FSNamesystem: BLOCK* ask <lan>:50010 to replicate blk_<id:blk> to datanode(s) <lan:b>:50010
DataNode$DataTransfer: <lan>:50010:Transmitted block blk_<id:blk> to /<lan:b>:50010

DataNode$BlockReceiver: Exception in receiveBlock for block blk_<id:blk> java.io.IOException: Connection reset by peer
DataNode$PacketResponder: PacketResponder blk_<id:blk> <=1|2> Exception java.net.SocketTimeoutException: 60000 millis timeout, remote=/<lan>:50010

FSEditLog: Number of transactions: <num:900> Total time for transactions(ms): <ms:30> Number of syncs: <num:500> SyncTimes(ms): <ms:400>
StateChange: DIR* completeFile: /warehouse/<=orders|clicks|stock>/day=<=170|171|172>/part-<id:part>.parquet is closed by DFSClient_<id:client>
""",
    pace_ms=120,
)

SPARK = Application(
    "spark executor",
    "%y/%m/%d %H:%M:%S",
    "<time> ",
    """
INFO executor.CoarseGrainedExecutorBackend: Got assigned task <seq:3>
INFO executor.Executor: Running task <num:200>.0 in stage <num:30>.0 (TID <seq:3>)
INFO storage.ShuffleBlockFetcherIterator: Getting <num:60> (<dec2:40> MiB) non-empty blocks including <num:12> local and <num:40> remote blocks
?INFO storage.ShuffleBlockFetcherIterator: Started <num:9> remote fetches in <ms:5> ms
INFO executor.Executor: Finished task <num:200>.0 in stage <num:30>.0 (TID <seq:3>). <num:2400> bytes result sent to driver

INFO broadcast.TorrentBroadcast: Started reading broadcast variable <num:90> with 1 pieces (estimated total size 4.0 MiB)
INFO memory.MemoryStore: Block broadcast_<num:90>_piece0 stored as bytes in memory (estimated size <dec2:9> KiB, free <dec2:360> MiB)
INFO broadcast.TorrentBroadcast: Reading broadcast variable <num:90> took <ms:9> ms
INFO memory.MemoryStore: Block broadcast_<num:90> stored as values in memory (estimated size <dec2:20> KiB, free <dec2:360> MiB)

INFO datasources.FileScanRDD: Reading File path: s3a://lake/<=orders|clicks|stock|returns>/day=2024-06-<=08|09|10>/part-<id:part>-<hex:12>.snappy.parquet, range: 0-<size:9000000>, partition values: [<=19883|19884|19885>]
?INFO codegen.CodeGenerator: Code generated in <dec:12> ms

INFO rdd.HadoopRDD: Input split: hdfs://nameservice1/warehouse/<=orders|clicks|stock>/<id:split>.gz:0+<size:9000000>

INFO output.FileOutputCommitter: Saved output of task 'attempt_20240610_<id:attempt>_m_<num:300>_<to>' to s3a://lake/out/_temporary/0
INFO mapred.SparkHadoopMapRedUtil: attempt_20240610_<id:attempt>_m_<num:300>_<to>: Committed

INFO sort.ExternalSorter: Task <seq:3> force spilling in-memory map to disk and it will release <dec2:210> MB memory
WARN memory.TaskMemoryManager: Failed to allocate a page (<size:60000000> bytes), try again.

WARN executor.ProcfsMetricsGetter: Exception when trying to compute pagesize, as a result reporting of ProcessTree metrics is stopped

ERROR executor.Executor: Exception in task <num:200>.<to> in stage <num:30>.0 (TID <seq:3>)
!org.apache.spark.shuffle.FetchFailedException: Failed to connect to <host>/<lan>:7337
!	at org.apache.spark.storage.ShuffleBlockFetcherIterator.throwFetchFailedException(ShuffleBlockFetcherIterator.scala:<=1167|1239>)
!	at org.apache.spark.storage.ShuffleBlockFetcherIterator.next(ShuffleBlockFetcherIterator.scala:<=903|771>)
!	at org.apache.spark.executor.Executor$TaskRunner.run(Executor.scala:<=621|548>)
!Caused by: java.io.IOException: Connecting to /<lan>:7337 timed out (120000 ms)

INFO storage.BlockManager: Removing RDD <num:60>
INFO executor.CoarseGrainedExecutorBackend: Driver commanded a shutdown
""",
    pace_ms=30,
)

ZOOKEEPER = Application(
    "zookeeper",
    "%Y-%m-%d %H:%M:%S,{ms}",
    "<time> [myid:<=1|2|3>] - ",
    """
INFO  [NIOWorkerThread-<thread:9>:ZooKeeperServer@<=1086|1045>] - Client attempting to establish new session at /<lan>:<port>
INFO  [CommitProcessor:<=1|2|3>:LeaderSessionTracker@<=104|117>] - Committing global session 0x10000<hex:11>
INFO  [SyncThread:0:ZooKeeperServer@<=1086|1045>] - Established session 0x10000<hex:11> with negotiated timeout <30000|40000|10000> for client /<lan>:<port>
?INFO  [NIOWorkerThread-<thread:9>:NIOServerCnxn@<=1056|1040>] - Closed socket connection for client /<lan>:<port> which had sessionid 0x10000<hex:11>

WARN  [NIOWorkerThread-<thread:9>:NIOServerCnxn@<=373|364>] - Unable to read additional data from client sessionid 0x10000<session>, likely client has closed socket

INFO  [SessionTracker:ZooKeeperServer@<=398|610>] - Expiring session 0x10000<session>, timeout of <30000|40000|10000>ms exceeded
INFO  [ProcessThread(sid:0 cport:2181)::PrepRequestProcessor@<=487|653>] - Processed session termination for sessionid: 0x10000<session>

INFO  [ProcessThread(sid:0 cport:2181)::PrepRequestProcessor@<=487|653>] - Got user-level KeeperException when processing sessionid:0x10000<session> type:<create|delete|setData> cxid:0x<hex:3> zxid:0x<seq:3> txntype:-1 reqpath:n/a Error Path:/<brokers|locks|config|leases>/<=ids|lock|topics|workers>/<num:30> Error:KeeperErrorCode = <NodeExists|NoNode|BadVersion>

INFO  [QuorumPeer[myid=<=1|2|3>]/0:0:0:0:0:0:0:0:2181:FastLeaderElection@<=774|979>] - Notification time out: <400|800|1600|3200|60000>
?INFO  [WorkerReceiver[myid=<=1|2|3>]:FastLeaderElection@<=595|542>] - Notification: <1|2|3> (n.leader), 0x<seq:3> (n.zxid), 0x<to> (n.round), LOOKING (n.state)
INFO  [QuorumPeer[myid=<=1|2|3>]/0:0:0:0:0:0:0:0:2181:QuorumPeer@<=738|856>] - <FOLLOWING|LEADING|LOOKING>

INFO  [SyncThread:0:FileTxnLog@<=199|284>] - Creating new log file: log.<seq:31>
INFO  [Snapshot Thread:FileTxnSnapLog@<=240|404>] - Snapshotting: 0x<seq:3> to /var/lib/zookeeper/version-2/snapshot.<seq:3>

WARN  [SyncThread:0:FileTxnLog@<=334|372>] - fsync-ing the write ahead log in SyncThread:0 took <ms:1500>ms which will adversely effect operation latency

WARN  [RecvWorker:<=1|2|3>:QuorumCnxManager$RecvWorker@<=762|780>] - Connection broken for id <=1|2|3>, my id = <1|2|3>, error =
!java.io.EOFException
!	at java.io.DataInputStream.readInt(DataInputStream.java:<=392|397>)
!	at org.apache.zookeeper.server.quorum.QuorumCnxManager$RecvWorker.run(QuorumCnxManager.java:<=747|765>)
WARN  [RecvWorker:<=1|2|3>:QuorumCnxManager$RecvWorker@<=765|784>] - Interrupting SendWorker

INFO  [NIOServerCxn.Factory:0.0.0.0/0.0.0.0:2181:NIOServerCnxn@<=827|842>] - Processing <ruok|stat|mntr|srvr> command from /<lan>:<port>
""",
)

REDIS = Application(
    "redis",
    "%d %b %Y %H:%M:%S,{ms}",
    "<pid>:<M|M|S|C> <time> ",
    """
* <=10|100|10000> changes in <=300|60> seconds. Saving...
* Background saving started by pid <task>
* Fork CoW for RDB: current <num:14> MB, peak <num:14> MB, average <num:9> MB
* DB saved on disk
* Background saving terminated with success

- DB 0: <num:90000> keys (<num:60000> volatile) in <131072|262144> slots HT.
- <num:140> clients connected (<to> replicas), <size:90000000> bytes in use

- Accepted <lan>:<port> id=<id:redis>
?- Client closed connection id=<id:redis> addr=<lan>:<port> laddr=<self>:6379 fd=<num:90> name=<cart|session|rate> age=<num:400> idle=<num:3>

* Replica <lan>:6379 asks for synchronization
* Partial resynchronization request from <lan>:6379 accepted. Sending <size:80000> bytes of backlog starting from offset <seq:173>.
?* Synchronization with replica <lan>:6379 succeeded

# Client id=<id:redis> addr=<lan>:<port> fd=<num:90> name= age=<num:400> idle=0 flags=N db=0 sub=0 psub=0 multi=-1 qbuf=0 omem=<size:300000> cmd=<lrange|hgetall|subscribe> scheduled to be closed ASAP for overcoming of output buffer limits.

* Starting automatic rewriting of AOF on <pct>% growth
* Background append only file rewriting started by pid <task>
* Background AOF rewrite terminated with success

# Slow command: <dec:40> ms <EVALSHA|KEYS|SMEMBERS|HGETALL> <=cart|session|rate|stock>:<id:rediskey> from <lan>:<port>

# Connection with replica <lan>:6379 lost.
* FAIL message received from <hex:40> about <hex:8>
# Cluster state changed: <ok|fail>

# WARNING overcommit_memory is set to 0! Background save may fail under low memory condition.
# Error allocating memory: used <size:900000000> limit <=1073741824|2147483648>
""",
    pace_ms=60,
)

POSTGRES = Application(
    "postgres",
    "%Y-%m-%d %H:%M:%S.{ms} UTC",
    "<time> [<task>] <=app@shop|report@dwh|etl@dwh|auth@users> ",
    """
LOG:  duration: <dec:8> ms  statement: SELECT id, status, total FROM orders WHERE customer_id = <num:40000> ORDER BY created_at DESC LIMIT <20|50>
?DETAIL:  parameters: $1 = '<num:40000>', $2 = '<open|paid|shipped|returned>', $3 = 'ref-<id:order>'

LOG:  connection received: host=<lan> port=<port>
LOG:  connection authorized: user=<user> database=<=shop|dwh|users> SSL enabled (protocol=TLSv1.3, cipher=TLS_AES_256_GCM_SHA384, bits=256)
?LOG:  disconnection: session time: 0:<=00|01|07|12>:<pct>.<num:300> user=<user> database=<=shop|dwh|users> host=<lan> port=<port>

LOG:  duration: <dec:3> ms  execute S_<thread>: UPDATE stock SET reserved = reserved + $1 WHERE sku = $2 AND warehouse = $3
DETAIL:  parameters: $1 = '<to>', $2 = 'SKU-<id:product>', $3 = '<num:12>'

LOG:  checkpoint starting: <time|wal>
LOG:  checkpoint complete: wrote <num:4000> buffers (<dec2:3>%); 0 WAL file(s) added, <to> removed, <num:12> recycled; write=<dec:200> s, sync=<dec:0.1> s, total=<dec:200> s; distance=<num:90000> kB

LOG:  automatic vacuum of table "shop.public.<orders|stock|sessions|carts>": index scans: <0|1>, pages: 0 removed, <num:9000> remain, tuples: <num:2000> removed, <num:90000> remain
LOG:  automatic analyze of table "shop.public.<orders|stock|sessions|carts>" system usage: CPU: user: <dec2:0.4> s, system: 0.0<to> s, elapsed: <dec2:1> s

ERROR:  duplicate key value violates unique constraint "<=orders_ref_key|users_mail_key|carts_pkey>"
DETAIL:  Key (<=ref|mail|id>)=(<id:order>) already exists.
STATEMENT:  INSERT INTO <=orders|users|carts> (ref, created_at) VALUES ($1, now())

ERROR:  deadlock detected
DETAIL:  Process <num:9000> waits for ShareLock on transaction <id:xid>; blocked by process <num:9000>.
HINT:  See server log for query details.
CONTEXT:  while updating tuple (<num:900>,<num:40>) in relation "<stock|orders>"

LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp<task>.<to>", size <size:40000000>

FATAL:  <remaining connection slots are reserved|the database system is starting up|canceling authentication due to timeout>

WARNING:  there is no transaction in progress
LOG:  process <num:9000> still waiting for ExclusiveLock on relation <num:16900> of database 16384 after <dec:1000> ms
""",
)

KUBELET = Application(
    "kubelet",
    "%m%d %H:%M:%S.{us}",
    "",
    """
!I<time> <pid> kubelet.go:<=2431|2424>] "SyncLoop (PLEG): event for pod" pod="<=shop|pay|core|data>/<=checkout|catalog|mailer|pricing|stock>-<hex:9>-<thread:9999>" event=&{ID:<hex:16> Type:Container<Started|Died> Data:<hex:12>}
!I<time> <pid> pod_startup_latency_tracker.go:102] "Observed pod startup duration" pod="<=shop|pay|core|data>/<=checkout|catalog|mailer|pricing|stock>-<hex:9>-<thread:9999>" podStartSLOduration=<dec:2> podStartE2EDuration="<dec:3>s"
?!I<time> <pid> reconciler_common.go:<=258|300>] "operationExecutor.VerifyControllerAttachedVolume started for volume \\"<config|secrets|kube-api-access|data>\\"" pod="<=shop|pay|core|data>/<=checkout|catalog|mailer|pricing|stock>-<hex:9>-<thread:9999>"

!I<time> <pid> prober.go:<=107|116>] "Probe failed" probeType="<Readiness|Liveness|Startup>" pod="<=shop|pay|core|data>/<=checkout|catalog|mailer|pricing|stock>-<=7c9d4b6f5|5f8bb9c77|66d5f4b8c>-<thread:60>" containerName="<=app|proxy>" probeResult="failure" output="HTTP probe failed with statuscode: <503|500>"

!E<time> <pid> pod_workers.go:<=1298|951>] "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"<=app|proxy>\\" with CrashLoopBackOff: \\"back-off <10s|40s|2m40s|5m0s> restarting failed container\\"" pod="<=shop|pay|core|data>/<=checkout|catalog|mailer|pricing|stock>-<=7c9d4b6f5|5f8bb9c77|66d5f4b8c>-<thread:60>"

!I<time> <pid> scope.go:117] "RemoveContainer" containerID="<hex:32>"
?!E<time> <pid> remote_runtime.go:<=432|295>] "ContainerStatus from runtime service failed" err="rpc error: code = NotFound desc = could not find container \\"<hex:32>\\"" containerID="<hex:32>"

!I<time> <pid> kubelet_getters.go:<=187|178>] "Pod status updated" pod="kube-system/kube-proxy-<host>" status="Running"

!W<time> <pid> eviction_manager.go:<=350|380>] "Attempting to reclaim" resourceName="<memory|ephemeral-storage>" available=<num:400>Mi threshold=<100|500>Mi

!I<time> <pid> image_gc_manager.go:<=391|310>] "Disk usage on image filesystem is over the high threshold, trying to free bytes down to the low threshold" usage=<pct> highThreshold=85 amountToFree=<size:900000000> lowThreshold=80

!E<time> <pid> nestedpendingoperations.go:348] Operation for "{volumeName:kubernetes.io/csi/vol-<hex:12> podName: nodeName:}" failed. No retries permitted until the next sync (durationBeforeRetry <500ms|1s|2s|4s>). Error: MountVolume.SetUp failed for volume "pvc-<uuid>": timed out
?!W<time> <pid> volume_manager.go:<=401|389>] "Volume still in use" volume="pvc-<uuid>" attachments=<to>

!I<time> <pid> setters.go:<=568|552>] "Node became not ready" node="<host>" reason="<KubeletNotReady|NetworkUnavailable>" message="container runtime is down"
!I<time> <pid> kubelet_node_status.go:<=76|112>] "Successfully registered node" node="<host>"

!W<time> <pid> dns.go:153] "Nameserver limits were exceeded, some nameservers have been omitted" nameservers="<self> 8.8.8.8"

!I<time> <pid> cpu_manager.go:<=214|250>] "updated default cpuset" cpuset="0-<3|7|15>"
!I<time> <pid> memory_manager.go:<=170|300>] "RemoveStaleState removing state" podUID="<uuid>" containerName="<=app|proxy>"
""",
)

APPLICATIONS = (KAFKA, HDFS, SPARK, ZOOKEEPER, REDIS, POSTGRES, KUBELET)
