package org.apache.rocketmq.test.grpc.v2;

import apache.rocketmq.v2.Endpoints;
import apache.rocketmq.v2.QueryRouteResponse;
import java.util.UUID;
import logstore.OurBroker;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.constant.GrpcConstants;
import org.apache.rocketmq.proxy.config.ConfigurationManager;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** RocketMQ's own tests of its proxy, against that of a broker of ours. */
public class OurProxyIT extends GrpcBaseIT {
    @Override
    @Before
    public void setUp() throws Exception {
        // Where a consumer of dead letters looks that is told nothing else.
        System.setProperty(MixAll.NAMESRV_ADDR_PROPERTY, NAMESRV_ADDR);
        // Where the tests expect queues to be.
        ConfigurationManager.initConfig();
        ConfigurationManager.getProxyConfig().setGrpcServerPort(OurBroker.proxyPort());
        brokerController1.getBrokerConfig().setTransactionCheckInterval(1000);
        header.put(GrpcConstants.CLIENT_ID, "client-id" + UUID.randomUUID());
        header.put(GrpcConstants.LANGUAGE, "JAVA");
        blockingStub = createBlockingStub(createChannel(OurBroker.proxyPort()));
        stub = createStub(createChannel(OurBroker.proxyPort()));
    }

    @After
    public void tearDown() {
        shutdown();
    }

    /** Clients say where they have found the proxy, and so do these. */
    @Override
    public Endpoints buildEndpoints(int port) {
        return super.buildEndpoints(OurBroker.proxyPort());
    }

    @Test
    public void testQueryRoute() throws Exception {
        QueryRouteResponse response = blockingStub.queryRoute(buildQueryRouteRequest(initTopic()));
        assertQueryRoute(response, brokerControllerList.size() * DEFAULT_QUEUE_NUMS);
    }

    @Override
    @Test
    public void testQueryAssignment() throws Exception {
        super.testQueryAssignment();
    }

    @Override
    @Test
    public void testQueryFifoAssignment() throws Exception {
        super.testQueryFifoAssignment();
    }

    @Override
    @Test
    public void testTransactionCheckThenCommit() {
        super.testTransactionCheckThenCommit();
    }

    @Override
    @Test
    public void testSimpleConsumerSendAndRecvDelayMessage() throws Exception {
        super.testSimpleConsumerSendAndRecvDelayMessage();
    }

    @Override
    @Test
    public void testSimpleConsumerSendAndRecallDelayMessage() throws Exception {
        super.testSimpleConsumerSendAndRecallDelayMessage();
    }

    @Override
    @Test
    public void testSimpleConsumerSendAndRecvBigMessage() throws Exception {
        super.testSimpleConsumerSendAndRecvBigMessage();
    }

    @Override
    @Test
    public void testSimpleConsumerSendAndRecv() throws Exception {
        super.testSimpleConsumerSendAndRecv();
    }

    @Override
    @Test
    public void testSimpleConsumerToDLQ() throws Exception {
        super.testSimpleConsumerToDLQ();
    }

    @Override
    @Test
    public void testConsumeOrderly() throws Exception {
        super.testConsumeOrderly();
    }
}
