package main

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var reviewChecks = []check{
	{name: "reviews/self-subject-access", run: selfSubjectAccess},
	{name: "reviews/self-subject-rules", run: selfSubjectRules},
	{name: "reviews/self-subject", run: selfSubject},
}

func selfSubjectAccess(c *cluster) {
	reviews := c.typed.AuthorizationV1().SelfSubjectAccessReviews()
	for _, spec := range []authorizationv1.SelfSubjectAccessReviewSpec{
		{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: c.namespace, Verb: "create", Group: "apps", Resource: "deployments"}},
		{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}},
		{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"}},
	} {
		review := must(reviews.Create(c, &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{}))
		equal("allowed", review.Status.Allowed, true)
		equal("what was asked", review.Spec, spec)
	}
	local := &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "somebody", Groups: []string{"system:masters"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: c.namespace, Verb: "get", Resource: "pods"},
		},
	}
	review := must(c.typed.AuthorizationV1().LocalSubjectAccessReviews(c.namespace).Create(c, local, metav1.CreateOptions{}))
	equal("a master is allowed", review.Status.Allowed, true)
}

func selfSubjectRules(c *cluster) {
	review := must(c.typed.AuthorizationV1().SelfSubjectRulesReviews().Create(c, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: c.namespace},
	}, metav1.CreateOptions{}))
	equal("rules are there", len(review.Status.ResourceRules) > 0, true)
}

func selfSubject(c *cluster) {
	review := must(c.typed.AuthenticationV1().SelfSubjectReviews().Create(c, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	equal("there is a user", review.Status.UserInfo.Username != "", true)
}
